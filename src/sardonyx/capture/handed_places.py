"""Where a result of a block lies in memory, named from outside and computed inside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch

from sardonyx.capture.alias import AliasTracker
from sardonyx.capture.graph import TensorType, Value
from sardonyx.capture.memory import Base, Place, View
from sardonyx.capture.view_positions import positions
from sardonyx.capture.views import Positions

Condition: TypeAlias = tuple[Value, int]
"""A selector, and the number that it is to have."""


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

    number: int | None
    """Of the place, in the selector of the result."""
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

    selector: Value | None
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
            return aliases.emit(torch.ops.aten.where.self, _holds(aliases, told), one, other)

        numbers = [_told_of(route, lambda s: aliases.number_of(s.place)) for route in self.routes]
        own = [route.number for route in self.routes]
        if len(own) > 1 and numbers == own:
            assert self.selector is not None
            return self.selector
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

        return self._told([_told_of(route, found) for route in self.routes])

    def _written(
        self, told: Any, write: Callable[[Any], Value], type_: TensorType, aliases: AliasTracker
    ) -> Value:
        if not isinstance(told, _Either):
            return write(told)
        sides = [
            partial(self._written, side, write, type_, aliases) for side in (told.one, told.other)
        ]
        return aliases.branch(_holds(aliases, told), sides, type_)

    def _told(self, of_routes: Sequence[Any]) -> Any:
        result = of_routes[-1]
        for route, told in zip(self.routes[-2::-1], of_routes[-2::-1], strict=True):
            assert self.selector is not None and route.number is not None
            result = _either((self.selector, route.number), told, result)
        return result


def _told_of(route: Route, told: Callable[[Step], Any]) -> Any:
    *others, last = route.steps
    result = told(last)
    for step in reversed(others):
        assert step.condition is not None
        result = _either(step.condition, told(step), result)
    return result


def _either(condition: Condition, one: Any, other: Any) -> Any:
    return one if one == other else _Either(condition, one, other)


def _holds(aliases: AliasTracker, either: _Either) -> Value:
    return aliases.emit(torch.ops.aten.eq.Scalar, *either.condition)


def _as_constant(number: int) -> Value:
    constant = torch.tensor(number)
    return Value(f"place_{number}", TensorType(torch.int64, ()), constant=constant)


def as_it_is(view: View, located: Mapping[Base, Positions] | None = None) -> Handed:
    """What is not in a block at all."""
    routes = []
    for number, place in view.options:
        link = None if located is None else located.get(place.base)
        seen = place if link is None else Place(place.base, (link,))
        routes.append(Route(number, (Step(None, seen, place),)))
    return Handed(view.selector, tuple(routes))
