"""What the results of a block are, seen from outside: memory from there, or new memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch

from sardonyx.capture.graph import TensorType, Value
from sardonyx.capture.memory import Base, Chain, Chosen, Place, View
from sardonyx.capture.views import Emit

_Condition: TypeAlias = tuple[Value, int]
"""A selector, and the number that it is to have."""


@dataclass(frozen=True, slots=True)
class _Route:
    """Where a place of a result is outside: the first whose condition holds. The last has none."""

    number: int | None
    """Of the place, in the selector of the result."""
    steps: tuple[tuple[_Condition | None, Place], ...]


@dataclass(frozen=True, slots=True)
class Handed:
    """A result of a block, its places named from outside."""

    selector: Value | None
    routes: tuple[_Route, ...]

    @property
    def places(self) -> list[Place]:
        return [place for route in self.routes for _, place in route.steps]

    def number(self, emit: Emit, number_of: Callable[[Place], int]) -> Value:
        """The number of its place outside; written inside the block."""
        numbers = [_number(emit, number_of, route) for route in self.routes]
        if all(n == route.number for n, route in zip(numbers, self.routes, strict=True)):
            assert self.selector is not None
            return self.selector
        if all(n == numbers[0] for n in numbers):
            return as_constant(numbers[0])
        result = as_constant(numbers[-1])
        for number, route in zip(numbers[-2::-1], self.routes[-2::-1], strict=True):
            assert self.selector is not None and route.number is not None
            result = _where(emit, (self.selector, route.number), number, result)
        return result


def _number(emit: Emit, number_of: Callable[[Place], int], route: _Route) -> Value | int:
    *others, (_, last) = route.steps
    result: Value | int = number_of(last)
    for condition, place in reversed(others):
        assert condition is not None
        result = _where(emit, condition, number_of(place), result)
    return result


def _where(emit: Emit, condition: _Condition, number: Value | int, otherwise: Value | int) -> Value:
    selector, chosen = condition
    is_chosen = emit(torch.ops.aten.eq.Scalar, selector, chosen)
    return emit(torch.ops.aten.where.self, is_chosen, as_constant(number), as_constant(otherwise))


def as_constant(number: Value | int) -> Value:
    if isinstance(number, Value):
        return number
    constant = torch.tensor(number)
    return Value(f"place_{number}", TensorType(torch.int64, ()), constant=constant)


def as_it_is(view: View | Chosen) -> Handed:
    """What is not in a block at all."""
    routes = tuple(_Route(n, ((None, place),)) for n, place in _options(view))
    return Handed(view.selector if isinstance(view, Chosen) else None, routes)


def handed_on(
    ends: Sequence[View | Chosen | None],
    cells: Sequence[Base | None],
    is_local: Callable[[Base], bool],
    is_visible: Callable[[Chain], bool],
) -> list[Handed | None]:
    """For each result: what it is outside, where `cells` are the memory that the results are
    themselves; None for those that cannot be told (and those without a cell).

    Memory that the block made is that of the first result that holds it."""
    cells = list(cells)
    while True:
        found = [
            None if end is None or cells[place] is None
            else _handed(place, end, ends, cells, is_local, is_visible)
            for place, end in enumerate(ends)
        ]  # fmt: skip
        lost = [p for p, handed in enumerate(found) if handed is None and cells[p] is not None]
        if not lost:
            return found
        for place in lost:
            cells[place] = None


def _handed(
    at: int,
    end: View | Chosen,
    ends: Sequence[View | Chosen | None],
    cells: Sequence[Base | None],
    is_local: Callable[[Base], bool],
    is_visible: Callable[[Chain], bool],
) -> Handed | None:
    routes = []
    for number, place in _options(end):
        if not is_visible(place.chain):
            return None
        if not is_local(place.base):
            routes.append(_Route(number, ((None, place),)))
            continue
        steps = _steps(at, place, ends, cells)
        if steps is None:
            return None
        routes.append(_Route(number, steps))
    return Handed(end.selector if isinstance(end, Chosen) else None, tuple(routes))


def _steps(
    at: int,
    place: Place,
    ends: Sequence[View | Chosen | None],
    cells: Sequence[Base | None],
) -> tuple[tuple[_Condition | None, Place], ...] | None:
    holders = [p for p, end in enumerate(ends) if end is not None and place.base in end.bases]
    own = cells[at]
    assert own is not None
    if holders == [at]:
        return ((None, Place(own, ())),)
    steps: list[tuple[_Condition | None, Place]] = []
    for holder in holders:
        end, cell = ends[holder], cells[holder]
        assert end is not None
        whole = [n for n, p in _options(end) if p.base is place.base and not p.chain]
        if not whole:
            continue
        if cell is None:
            return None
        seen = Place(cell, place.chain)
        if isinstance(end, View) or (holder == at and not place.chain):
            return (*steps, (None, seen))
        for number in whole:
            assert number is not None
            steps.append(((end.selector, number), seen))
    return None


def _options(view: View | Chosen) -> Sequence[tuple[int | None, Place]]:
    if isinstance(view, Chosen):
        return list(zip(view.numbers, view.places, strict=True))
    return [(None, place) for place in view.places]
