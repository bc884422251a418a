"""What the results of a block are, seen from outside: memory from there, or new memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from sardonyx.capture.alias import AliasTracker
from sardonyx.capture.graph import TensorType, Value
from sardonyx.capture.handed_places import Handed, Route, Step
from sardonyx.capture.memory import Base, Chain, Place, View
from sardonyx.capture.view_positions import can_be_located
from sardonyx.capture.views import Positions


@dataclass(slots=True, eq=False)
class Choice:
    """A result that may be one of several places."""

    value: Value
    is_dense: bool = True
    places: list[Place] = field(default_factory=list)
    numbers: tuple[int, ...] = ()
    """Of the places, where they are not those that the places have otherwise."""
    cell: Base = field(init=False)
    """New memory: what the result holds itself, or more, of which it shows a part."""
    located: dict[Base, Positions] = field(default_factory=dict)
    """Pieces of memory in which it is told by the numbers of its elements where it lies."""
    selector: Value = field(init=False)

    def __post_init__(self) -> None:
        self.selector = Value(f"{self.value.name}_place", TensorType(torch.int64, ()))
        self.cell = Base(self.value, self.value)

    @property
    def is_computed(self) -> bool:
        return len(self.places) > 1

    @property
    def is_part(self) -> bool:
        """Of its new memory, all of which is told then, as a line."""
        return self.cell.root is not self.value

    @property
    def told(self) -> list[Value]:
        """What says where it lies."""
        found = [self.selector] if self.is_computed else []
        found += [self.located[base].numbers for base in self._located_now()]
        return [*found, self.cell.root] if self._tells_memory() else found

    def tell(self, handed: Handed, content: Value, aliases: AliasTracker) -> list[Value]:
        """The same of what is handed on, computed."""
        found = [handed.number(aliases)] if self.is_computed else []
        found += [handed.positions(base, content, aliases) for base in self._located_now()]
        if self._tells_memory():
            found.append(handed.memory(self.cell, content, aliases))
        return found

    def _located_now(self) -> list[Base]:
        return [base for base in self.located if any(p.base is base for p in self.places)]

    def _tells_memory(self) -> bool:
        return self.is_part and any(place.base is self.cell for place in self.places)

    def locate(self, base: Base) -> None:
        """From now on it is told which elements of a piece of memory it shows."""
        name = f"{self.value.name}_positions_{len(self.located)}"
        self.located[base] = Positions(Value(name, TensorType(torch.int64, self.value.shape)))
        places, self.places = self.places, []
        self.add(places)

    def become_part(self, aliases: AliasTracker) -> None:
        """From now on all of its new memory is told, too."""
        line = aliases.new_line(f"{self.value.name}_memory", self.value.dtype)
        self.cell = Base(line, line)
        self.locate(self.cell)

    def forget(self) -> None:
        """What it may be."""
        self.places.clear()
        for base in [base for base in self.located if base is not self.cell]:
            del self.located[base]

    def add(self, places: Sequence[Place]) -> bool:
        """Whether one of them is new."""
        count = len(self.places)
        for place in places:
            link = self.located.get(place.base)
            if link is not None:
                place = Place(place.base, (link,))
            if not any(known.is_same(place) for known in self.places):
                self.places.append(place)
        return len(self.places) > count

    def settle(self, aliases: AliasTracker) -> None:
        """From here on the value is one of the places, of which it holds the content now."""
        first = self.places[0]
        if not self.is_computed and self.is_dense and not first.chain:
            aliases.views[self.value] = View((first,), self.value, (first.base.version,))
            return
        numbers = self.numbers or tuple(map(aliases.number_of, self.places))
        versions = tuple(place.base.version for place in self.places)
        aliases.views[self.value] = View(
            tuple(self.places), self.value, versions, self.selector, numbers, self.is_dense
        )


def extent(choices: Mapping[int, Choice]) -> tuple[int, int]:
    """How much is told of all of them."""
    located = sum(len(choice.located) for choice in choices.values())
    return located, sum(choice.is_part for choice in choices.values())


@dataclass(frozen=True, slots=True)
class Handover:
    """From the end of a block to what is outside. Where a choice has to tell more than it did for
    that, it does from then on; and what was handed on before does not hold any more."""

    aliases: AliasTracker
    ends: Sequence[View | None]
    is_local: Callable[[Base], bool]
    is_visible: Callable[[Chain], bool]
    """Whether what its views read is known outside."""
    choices: dict[int, Choice]

    def handed_on(self) -> list[Handed | None]:
        """For each result: what it is outside; None for those that cannot be told, and those that
        are no choices.

        Memory that the block made is that of the first result that holds it."""
        choices = dict(self.choices)
        while True:
            found = [self._handed(at, choices) for at in range(len(self.ends))]
            lost = [at for at in choices if found[at] is None]
            if not lost:
                return found
            for at in lost:
                del choices[at]

    def _handed(self, at: int, choices: Mapping[int, Choice]) -> Handed | None:
        end, choice = self.ends[at], choices.get(at)
        if end is None or choice is None:
            return None
        routes = []
        for number, place in end.options:
            steps = self._steps(at, place, choices)
            if steps is None and not choice.is_part:
                choice.become_part(self.aliases)
                steps = self._steps(at, place, choices)
            seen = None if steps is None else self._seen_outside(choice, steps, choices)
            if seen is None:
                return None
            routes.append(Route(number, seen))
        return Handed(end.selector, tuple(routes))

    def _seen_outside(
        self, choice: Choice, steps: Sequence[Step], choices: Mapping[int, Choice]
    ) -> tuple[Step, ...] | None:
        lines = {other.cell for other in choices.values() if other.is_part}
        found = []
        for step in steps:
            base, chain = step.place
            if base not in choice.located and (base in lines or not self.is_visible(chain)):
                choice.locate(base)
            link = choice.located.get(base)
            if link is not None:
                if not can_be_located(chain):
                    return None
                step = Step(step.condition, Place(base, (link,)), step.inside)
            found.append(step)
        return tuple(found)

    def _steps(
        self, at: int, place: Place, choices: Mapping[int, Choice]
    ) -> tuple[Step, ...] | None:
        if not self.is_local(place.base):
            return (Step(None, place, place),)
        holders = [
            index
            for index, end in enumerate(self.ends)
            if end is not None and place.base in end.bases
        ]
        own = choices[at]
        if holders == [at] and not own.is_part:
            return (Step(None, Place(own.cell, ()), Place(place.base, ())),)
        steps: list[Step] = []
        for holder in holders:
            end, choice = self.ends[holder], choices.get(holder)
            assert end is not None
            if choice is None:
                if own.is_part:  # related to it, as all that is no choice
                    continue
                return None
            numbers = [
                number
                for number, other in end.options
                if other.base is place.base and (choice.is_part or not other.chain)
            ]
            seen = Place(choice.cell, place.chain)
            if holder == at:
                if own.is_part or not place.chain:
                    return (*steps, Step(None, seen, place))
            elif numbers and len(end.options) == 1:
                return (*steps, Step(None, seen, place))
            else:
                for number in numbers:
                    assert end.selector is not None and number is not None
                    steps.append(Step((end.selector, number), seen, place))
        return None
