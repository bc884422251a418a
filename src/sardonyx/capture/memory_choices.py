"""Results of branches, and what loops carry, that are one of several places in memory.

Which one is a number that the branch gives, or the loop carries, beside the content. A write is
then one of each place, where the number is that of the place. Where only the block knows how the
places lie in a piece of memory, or every iteration makes another, it gives the numbers of the
elements, too; and memory that it made, where the results are parts of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sardonyx.capture.alias import AliasTracker
from sardonyx.capture.block_handover import BlockEnd, Choice, extent
from sardonyx.capture.graph import Value
from sardonyx.capture.handed_places import Handed, as_it_is
from sardonyx.capture.memory import Place, View
from sardonyx.capture.view_positions import can_be_located

_MOST_PLACES = 16
"""Of a variable of a loop, before they are told by the numbers of their elements."""


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
