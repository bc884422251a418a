"""Results of branches, and what loops carry, that are one of several places in memory.

Which one is a number that the branch gives, or the loop carries, beside the content. A write is
then one of each place, where the number is that of the place. Where only the block knows how the
places lie in a piece of memory, or every iteration makes another, it gives the numbers of the
elements, too; and memory that it made, where the results are parts of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sympy
import torch

from sardonyx.aten.graph import Argument, SymbolSource, TensorType, Value, values_in
from sardonyx.functionalization.alias_tracking import AliasTracker
from sardonyx.functionalization.block_results import Handed, Route, Step, as_it_is
from sardonyx.functionalization.storage_model import Base, Chain, Place, View
from sardonyx.functionalization.view_indices import can_be_located
from sardonyx.functionalization.views import Positions, ViewLink

_MOST_PLACES = 16
"""Of a variable of a loop, before they are told by the numbers of their elements."""


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
        for condition, place in end.options:
            steps = self._steps(at, place, choices)
            if steps is None and not choice.is_part:
                choice.become_part(aliases)
                steps = self._steps(at, place, choices)
            seen = None if steps is None else self._seen_outside(choice, steps, choices)
            if seen is None:
                return None
            routes.append(Route(condition, seen))
        return Handed(tuple(routes))

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
            conditions = [
                condition
                for condition, other in end.options
                if other.base is place.base and (choice.is_part or not other.chain)
            ]
            seen = Place(choice.cell, place.chain)
            if holder == at:
                if own.is_part or not place.chain:
                    return (*steps, Step(None, seen, place))
            elif conditions and len(end.options) == 1:
                return (*steps, Step(None, seen, place))
            else:
                steps += [Step(condition, seen, place) for condition in conditions]
        return None


def item_at(
    aliases: AliasTracker, value: Value, items: Sequence[Value], at: Value, is_dense: bool
) -> None:
    """`value` is one of the items, that at a place which is computed."""
    views = [aliases.view_of(item) for item in items]
    numbers = [as_it_is(view).number(aliases) for view in views]
    number = numbers[-1]
    for place, other in reversed(list(enumerate(numbers[:-1]))):
        is_it = aliases.emit(torch.ops.aten.eq.Scalar, at, place)
        number = aliases.emit(torch.ops.aten.where.self, is_it, other, number)
    choice = Choice(value, is_dense)
    for view in views:
        choice.add(view.places)
    choice.selector = number
    choice.settle(aliases)


def choices_of_branch(
    aliases: AliasTracker,
    outputs: Sequence[Value],
    ends: Sequence[BlockEnd],
    candidates: Sequence[int],
) -> tuple[dict[int, Choice], list[list[Handed | None]]]:
    """The results that are one of several places, by their index; and what each side hands on."""
    choices = {
        index: Choice(outputs[index], all(end.is_dense[index] for end in ends))
        for index in candidates
    }
    while True:
        known = extent(choices)
        handed = [end.handed_on(choices, aliases) for end in ends]
        lost = [index for index in choices if any(side[index] is None for side in handed)]
        for index in lost:
            del choices[index]
        if not lost and known == extent(choices):
            break
        for choice in choices.values() if lost or known[1] != extent(choices)[1] else ():
            choice.forget()
    for index, choice in choices.items():
        for side in handed:
            found = side[index]
            assert found is not None
            choice.add(found.places)
    return choices, handed


class LoopChoices:
    """What a loop carries, by its position; in the body, memory that an iteration made and the
    next one holds is that of the block's input."""

    def __init__(
        self,
        aliases: AliasTracker,
        inputs: Sequence[Value],
        begun: Sequence[View],
        dense: Sequence[bool],
        candidates: Sequence[int],
    ) -> None:
        self._aliases = aliases
        self._begun = begun
        self.choices = {p: Choice(inputs[p], dense[p]) for p in candidates}
        for position, choice in self.choices.items():
            choice.add(begun[position].places)
        self.handed: list[Handed | None] = []

    def begin(self) -> list[Value]:
        """An iteration; what comes with what it carries."""
        for choice in self.choices.values():
            cell = choice.cell
            cell.current, cell.version, cell.uncertain_since = cell.root, 0, None
        for choice in self.choices.values():
            choice.settle(self._aliases)
        return [value for choice in self.choices.values() for value in choice.told]

    def hand_on(self, end: BlockEnd) -> bool:
        """To the next iteration; whether that says something new of this one."""
        known = extent(self.choices)
        self.handed = end.handed_on(self.choices, self._aliases)
        self._locate_what_moves()
        lost = [position for position in self.choices if self._is_lost(position)]
        for position in lost:
            del self.choices[position]
        if lost or known[1] != extent(self.choices)[1]:
            for position, choice in self.choices.items():
                choice.forget()
                choice.add(self._begun[position].places)
            return True
        grown = known != extent(self.choices)
        for position, choice in self.choices.items():
            handed = self.handed[position]
            assert handed is not None
            grown |= choice.add(handed.places)
            grown |= choice.is_dense and not end.is_dense[position]
            choice.is_dense &= end.is_dense[position]
        return grown

    def _is_lost(self, position: int) -> bool:
        choice = self.choices[position]
        return (
            self.handed[position] is None
            or len(choice.places) > _MOST_PLACES
            or any(
                base in choice.located and not can_be_located(chain)
                for base, chain in self._begun[position].places
            )
        )

    def _locate_what_moves(self) -> None:
        """`rest = rest[1:]` is another place in every iteration."""
        for position, choice in self.choices.items():
            handed = self.handed[position]
            new = [
                place
                for place in (() if handed is None else handed.places)
                if place.base not in choice.located and not any(map(place.is_same, choice.places))
            ]
            moved = [place.base for place in new if any(map(place.is_view_of, choice.places))]
            if len(choice.places) + len(new) > _MOST_PLACES:
                bases = [place.base for place in (*choice.places, *new)]
                moved += [base for base in bases if bases.count(base) > 1]
            for base in dict.fromkeys(moved):
                if base not in choice.located:
                    choice.locate(base)

    def first_told(self, contents: Sequence[Value]) -> list[Value]:
        """Of what the loop begins with."""
        return [
            value
            for position, choice in self.choices.items()
            for value in choice.tell(
                as_it_is(self._begun[position], choice.located), contents[position], self._aliases
            )
        ]

    def after(self, outputs: Sequence[Value]) -> dict[int, Choice]:
        """What the results of the loop are."""
        made = {p: Choice(outputs[p], c.is_dense) for p, c in self.choices.items()}
        for position, choice in self.choices.items():
            if choice.is_part:
                made[position].become_part(self._aliases)
        cells = {choice.cell: made[p].cell for p, choice in self.choices.items()}
        for position, choice in self.choices.items():
            result = made[position]
            for base in choice.located:
                if base is not choice.cell:
                    result.locate(cells.get(base, base))
            for base, chain in choice.places:
                result.add([Place(cells.get(base, base), chain)])
            result.numbers = tuple(map(self._aliases.number_of, choice.places))
        return made
