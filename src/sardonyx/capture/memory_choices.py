"""Results of branches, and what loops carry, that are one of several places in memory.

Which one is a number that the branch gives, or the loop carries, beside the content. A write is
then one of each place, where the number is that of the place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import sympy
import torch

from sardonyx.capture.alias import AliasTracker
from sardonyx.capture.block_handover import Handed, as_it_is, handed_on
from sardonyx.capture.graph import Argument, SymbolSource, TensorType, Value, values_in
from sardonyx.capture.memory import Base, Chain, Chosen, Place, View
from sardonyx.capture.views import ViewLink

_MOST_PLACES = 16
"""Of a variable of a loop. `row = row[1:]` makes a new one in every iteration."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockEnd:
    """What the results of a block hold at its end."""

    views: list[View | Chosen | None]
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

    def handed_on(self, cells: Sequence[Base | None]) -> list[Handed | None]:
        return handed_on(self.views, cells, self.is_local, self.is_visible)


@dataclass(slots=True, eq=False)
class Choice:
    """A result that may be one of several places, one of them new memory of its own, `cell`."""

    value: Value
    cell: Base
    is_dense: bool = True
    places: list[Place] = field(default_factory=list)
    numbers: tuple[int, ...] = ()
    """Of the places, where they are not those that the places have otherwise."""
    selector: Value = field(init=False)

    def __post_init__(self) -> None:
        self.selector = Value(f"{self.value.name}_place", TensorType(torch.int64, ()))

    @property
    def is_computed(self) -> bool:
        return len(self.places) > 1

    def add(self, places: Sequence[Place]) -> bool:
        """Whether one of them is new."""
        count = len(self.places)
        for place in places:
            if not any(known.is_same(place) for known in self.places):
                self.places.append(place)
        return len(self.places) > count

    def settle(self, aliases: AliasTracker) -> None:
        """From here on the value is one of the places, of which it holds the content now."""
        if not self.is_computed:
            (place,) = self.places
            aliases.views[self.value] = View(*place, self.value, place.base.version)
            return
        numbers = self.numbers or tuple(map(aliases.number_of, self.places))
        versions = tuple(place.base.version for place in self.places)
        aliases.views[self.value] = Chosen(
            self.selector, numbers, tuple(self.places), self.value, versions, self.is_dense
        )


def item_at(
    aliases: AliasTracker, value: Value, items: Sequence[Value], at: Value, is_dense: bool
) -> None:
    """`value` is one of the items, that at a place which is computed."""
    views = [aliases.view_of(item) for item in items]
    numbers = [as_it_is(view).number(aliases.emit, aliases.number_of) for view in views]
    number = numbers[-1]
    for place, other in reversed(list(enumerate(numbers[:-1]))):
        is_it = aliases.emit(torch.ops.aten.eq.Scalar, at, place)
        number = aliases.emit(torch.ops.aten.where.self, is_it, other, number)
    choice = Choice(value, Base(value, value), is_dense)
    for view in views:
        choice.add(view.places)
    choice.selector = number
    choice.settle(aliases)


def choices_of_branch(
    outputs: Sequence[Value], ends: Sequence[BlockEnd], candidates: Sequence[int]
) -> tuple[dict[int, Choice], list[list[Handed | None]]]:
    """The results that are one of several places, by their index; and what each side hands on."""
    cells: list[Base | None] = [None] * len(outputs)
    for index in candidates:
        cells[index] = Base(outputs[index], outputs[index])
    while True:
        handed = [end.handed_on(cells) for end in ends]
        lost = [i for i, c in enumerate(cells) if c and any(h[i] is None for h in handed)]
        if not lost:
            break
        for index in lost:
            cells[index] = None
    choices: dict[int, Choice] = {}
    for index, cell in enumerate(cells):
        if cell is not None:
            choice = Choice(outputs[index], cell, all(end.is_dense[index] for end in ends))
            for side in handed:
                found = side[index]
                assert found is not None
                choice.add(found.places)
            choices[index] = choice
    return choices, handed


class LoopChoices:
    """What a loop carries, by its position; in the body, memory that an iteration made and the
    next one holds is that of the block's input."""

    def __init__(
        self,
        aliases: AliasTracker,
        inputs: Sequence[Value],
        begun: Sequence[View | Chosen],
        dense: Sequence[bool],
        candidates: Sequence[int],
    ) -> None:
        self._aliases = aliases
        self._begun = begun
        self.choices = {p: Choice(inputs[p], Base(inputs[p], inputs[p])) for p in candidates}
        for position, choice in self.choices.items():
            choice.is_dense = dense[position]
            choice.add(begun[position].places)
        self.handed: list[Handed | None] = []

    def begin(self) -> None:
        """An iteration."""
        for choice in self.choices.values():
            cell = choice.cell
            cell.current, cell.version, cell.uncertain_since = cell.root, 0, None
        for choice in self.choices.values():
            choice.settle(self._aliases)

    def hand_on(self, end: BlockEnd) -> bool:
        """To the next iteration; whether that says something new of this one."""
        cells: list[Base | None] = [None] * len(end.views)
        for position, choice in self.choices.items():
            cells[position] = choice.cell
        self.handed = end.handed_on(cells)
        lost = [
            position
            for position, choice in self.choices.items()
            if self.handed[position] is None or len(choice.places) > _MOST_PLACES
        ]
        for position in lost:
            del self.choices[position]
        if lost:
            for position, choice in self.choices.items():
                choice.places = list(self._begun[position].places)
            return True
        grown = False
        for position, choice in self.choices.items():
            handed = self.handed[position]
            assert handed is not None
            grown |= choice.add(handed.places)
            grown |= choice.is_dense and not end.is_dense[position]
            choice.is_dense &= end.is_dense[position]
        return grown

    def first_numbers(self) -> list[Value]:
        aliases = self._aliases
        given = (as_it_is(self._begun[p]) for p, c in self.choices.items() if c.is_computed)
        return [handed.number(aliases.emit, aliases.number_of) for handed in given]

    def after(self, outputs: Sequence[Value]) -> dict[int, Choice]:
        """What the results of the loop are."""
        cells = {c.cell: Base(outputs[p], outputs[p]) for p, c in self.choices.items()}
        made: dict[int, Choice] = {}
        for position, choice in self.choices.items():
            places = [Place(cells.get(p.base, p.base), p.chain) for p in choice.places]
            numbers = tuple(map(self._aliases.number_of, choice.places))
            made[position] = Choice(
                outputs[position], cells[choice.cell], choice.is_dense, places, numbers
            )
        return made
