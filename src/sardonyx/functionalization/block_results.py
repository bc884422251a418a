"""Where a result of a block lies in memory, named from outside and computed inside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from sardonyx.aten.graph import TensorType, Value
from sardonyx.functionalization.alias_tracking import AliasTracker
from sardonyx.functionalization.storage_model import Base, Condition, Place, View
from sardonyx.functionalization.view_indices import positions
from sardonyx.functionalization.views import Positions


@dataclass(frozen=True, slots=True)
class Step:
    """Where a place of a result is outside, where a condition holds."""

    condition: Condition | None
    place: Place
    inside: Place
    """The same, named in the block."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a place of a result is outside: the first whose condition holds. The last has none."""

    condition: Condition | None
    """Where the result is that place."""
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class _Either:
    """One of two things, or of more."""

    condition: Condition
    one: Any
    other: Any


@dataclass(frozen=True, slots=True)
class Handed:
    """A result of a block, its places named from outside. What is told of them is written inside
    the block."""

    routes: tuple[Route, ...]

    @property
    def places(self) -> list[Place]:
        return [step.place for route in self.routes for step in route.steps]

    def number(self, aliases: AliasTracker) -> Value:
        """The number of its place outside."""

        def written(told: _Either | int) -> Value:
            if not isinstance(told, _Either):
                return _as_constant(told)
            one, other = written(told.one), written(told.other)
            is_one = aliases.holds(told.condition)
            return aliases.emit(torch.ops.aten.where.self, is_one, one, other)

        numbers = self._of_routes(lambda step: aliases.number_of(step.place))
        conditions = [route.condition for route in self.routes]
        first = conditions[0]
        if first and len(numbers) > 1 and conditions == [(first[0], n) for n in numbers]:
            return first[0]
        return written(self._told(numbers))

    def positions(self, base: Base, content: Value, aliases: AliasTracker) -> Value:
        """Which elements of memory from outside it shows, where it lies there. `content` is what it
        holds."""

        def written(place: Place | None) -> Value:
            if place is None:
                return aliases.emit(torch.ops.aten.zeros_like.default, content, dtype=torch.int64)
            return positions(aliases.emit, place.base.current.shape, place.chain)

        type_ = TensorType(torch.int64, content.shape)
        return self._written(self._inside(base, lambda place: place), written, type_, aliases)

    def memory(self, base: Base, content: Value, aliases: AliasTracker) -> Value:
        """All of the memory that it is a part of, where that is the new memory `base` outside."""

        def written(held: Value | None) -> Value:
            whole = content if held is None else held
            return aliases.emit(torch.ops.aten.reshape.default, whole, [math.prod(whole.shape)])

        found = self._inside(base, lambda place: place.base.current)
        return self._written(found, written, base.root.type, aliases)

    def _inside(self, base: Base, told: Callable[[Place], Any]) -> Any:
        def found(step: Step) -> Any:
            return told(step.inside) if step.place.base is base else None

        return self._told(self._of_routes(found))

    def _of_routes(self, told: Callable[[Step], Any]) -> list[Any]:
        return [
            _first_that_holds([(step.condition, told(step)) for step in route.steps])
            for route in self.routes
        ]

    def _written(
        self, told: Any, write: Callable[[Any], Value], type_: TensorType, aliases: AliasTracker
    ) -> Value:
        if not isinstance(told, _Either):
            return write(told)
        sides = [
            partial(self._written, side, write, type_, aliases) for side in (told.one, told.other)
        ]
        return aliases.branch(aliases.holds(told.condition), sides, type_)

    def _told(self, of_routes: Sequence[Any]) -> Any:
        conditions = [route.condition for route in self.routes]
        return _first_that_holds(list(zip(conditions, of_routes, strict=True)))


def _first_that_holds(cases: Sequence[tuple[Condition | None, Any]]) -> Any:
    """What is told of the first case whose condition holds, or else of the last."""
    *others, (_, result) = cases
    for condition, told in reversed(others):
        assert condition is not None
        result = told if told == result else _Either(condition, told, result)
    return result


def _as_constant(number: int) -> Value:
    constant = torch.tensor(number)
    return Value(f"place_{number}", TensorType(torch.int64, ()), constant=constant)


def as_it_is(view: View, located: Mapping[Base, Positions] | None = None) -> Handed:
    """What is not in a block at all."""
    routes = []
    for condition, place in view.options:
        link = None if located is None else located.get(place.base)
        seen = place if link is None else Place(place.base, (link,))
        routes.append(Route(condition, (Step(None, seen, place),)))
    return Handed(tuple(routes))
