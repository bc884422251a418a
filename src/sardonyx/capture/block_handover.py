"""What the results of a block are, seen from outside: memory from there, or new memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sympy
import torch

from sardonyx.capture.alias import AliasTracker
from sardonyx.capture.graph import Argument, SymbolSource, TensorType, Value, values_in
from sardonyx.capture.handed_places import Handed, Route, Step
from sardonyx.capture.memory import Base, Chain, Place, View
from sardonyx.capture.view_positions import can_be_located
from sardonyx.capture.views import Positions, ViewLink


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


@dataclass(frozen=True, slots=True, eq=False)
class BlockEnd:
    """What the results of a block hold at its end."""

    views: list[View | None]
    is_dense: list[bool]
    made: set[Value]
    """Inside it."""
    symbols: dict[sympy.Symbol, SymbolSource]

    def is_local(self, base: Base) -> bool:
        return base.root in self.made

    def is_visible(self, chain: Chain) -> bool:
        """Whether what its views read is known outside."""
        return not any(
            value in self.made for link in chain for value in self._values_read(link.reads())
        )

    def _values_read(self, argument: Argument) -> Iterator[Value]:
        yield from values_in(argument)
        if isinstance(argument, list):
            for item in argument:
                yield from self._values_read(item)
        elif isinstance(argument, sympy.Basic):
            for symbol in argument.free_symbols & self.symbols.keys():
                yield self.symbols[symbol].value

    def may_repeat(
        self, index: int, iteration: Value, starts: Sequence[Base], aliases: AliasTracker
    ) -> bool:
        """Whether what two iterations put into a list, as that result, may be one tensor."""
        stacked = self.views[index]
        for base, chain in () if stacked is None else stacked.places:
            if base in starts:
                carried = self.views[1 : 1 + len(starts)]
                handed_on = [other for view in carried if view is not None for other in view.bases]
                if any(aliases.are_related(base, other) for other in handed_on):
                    return True
            elif not self.is_local(base) and not self._is_of_its_iteration(chain, iteration):
                return True
        return False

    def _is_of_its_iteration(self, chain: Chain, iteration: Value) -> bool:
        """Whether it is an element of memory at the number of the iteration."""
        at_number = [
            link
            for link in chain
            if isinstance(link, ViewLink)
            and link.name == "aten::select"
            and iteration in self._values_read(link.arguments["index"])
            and isinstance(link.arguments["index"], (Value, sympy.Symbol))
        ]
        others = tuple(link for link in chain if link not in at_number)
        repeats = any(isinstance(k, ViewLink) and k.shows_elements_again for k in others)
        return len(at_number) == 1 and not repeats and self.is_visible(others)

    def without_first(self) -> BlockEnd:
        return BlockEnd(self.views[1:], self.is_dense[1:], self.made, self.symbols)

    def handed_on(
        self, choices: Mapping[int, Choice], aliases: AliasTracker
    ) -> list[Handed | None]:
        """For each result: what it is outside; None for those that cannot be told, and those that
        are no choices. Where a choice has to tell more than it did for that, it does from then on;
        and what was handed on before does not hold any more.

        Memory that the block made is that of the first result that holds it."""
        choices = dict(choices)
        while True:
            found = [self._handed(at, choices, aliases) for at in range(len(self.views))]
            lost = [at for at in choices if found[at] is None]
            if not lost:
                return found
            for at in lost:
                del choices[at]

    def _handed(
        self, at: int, choices: Mapping[int, Choice], aliases: AliasTracker
    ) -> Handed | None:
        end, choice = self.views[at], choices.get(at)
        if end is None or choice is None:
            return None
        routes = []
        for number, place in end.options:
            steps = self._steps(at, place, choices)
            if steps is None and not choice.is_part:
                choice.become_part(aliases)
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
            for index, end in enumerate(self.views)
            if end is not None and place.base in end.bases
        ]
        own = choices[at]
        if holders == [at] and not own.is_part:
            return (Step(None, Place(own.cell, ()), Place(place.base, ())),)
        steps: list[Step] = []
        for holder in holders:
            end, choice = self.views[holder], choices.get(holder)
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
