"""Which lists, dicts and objects of a TorchScript program may be one and the same.

After a branch or a loop a variable holds a new object, with what either side left in it. The
program itself would hold the object of one side, so that a change of one is a change of the other:
that cannot be followed, and is refused when it happens.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from sardonyx.aten.graph import Argument
from sardonyx.capture.torchscript.types.values import MaybeNone, Mutable, reachable


def settled(argument: Argument, changes: dict[Mutable, Any]) -> Argument:
    """A value read in a block, with the states that its objects had at the end of the block."""
    if isinstance(argument, tuple):
        items = tuple(settled(item, changes) for item in argument)
        return items if any(a is not b for a, b in zip(items, argument, strict=True)) else argument
    if isinstance(argument, MaybeNone):
        content = settled(argument.content, changes)
        same = content is argument.content
        return argument if same else replace(argument, content=content)
    if not isinstance(argument, Mutable):
        return argument
    after = settled_state(changes.get(argument, argument.held), changes)
    if after is argument.held:
        return argument
    made = copy.copy(argument)
    made.held = after
    return made


def settled_state(state: Any, changes: dict[Mutable, Any]) -> Any:
    """The same for what an object holds."""
    if not isinstance(state, dict):
        return settled(state, changes)
    items = {key: settled(item, changes) for key, item in state.items()}
    return items if any(items[key] is not item for key, item in state.items()) else state


def copied(argument: Argument) -> Argument:
    """A deep copy, which later changes leave alone."""
    if isinstance(argument, tuple):
        return tuple(copied(item) for item in argument)
    if isinstance(argument, MaybeNone):
        return replace(argument, content=copied(argument.content))
    if not isinstance(argument, Mutable):
        return argument
    made = copy.copy(argument)
    if isinstance(argument.held, dict):
        made.held = {key: copied(item) for key, item in argument.held.items()}
    elif isinstance(argument.held, tuple):
        made.held = copied(argument.held)
    return made


def entangle(result: Argument, side: Argument) -> None:
    """`result` may be `side` itself: neither is to be changed where the other is read later."""
    for young, old in _pairs(result, side):
        if young is not old:
            old.is_entangled = True
            old.maybe = (*old.maybe, young)
            young.maybe_of = (*young.maybe_of, old)


OtherNames: TypeAlias = set[tuple[int, int | Mutable]]
"""Objects that the next iteration receives, by their number: each may be another one that it
receives, or an object from outside the loop."""


def other_names(given: Sequence[Argument], after: Sequence[Argument], age: int) -> OtherNames:
    """Of the inputs and results of an iteration that began at an age."""
    numbers = {young: number for number, young in enumerate(_objects_in(given))}
    left: list[tuple[int, set[Mutable]]] = []
    for argument, handed_on in zip(given, after, strict=True):
        for young, old in _pairs(argument, handed_on):
            left.append((numbers[young], _may_be(old, numbers)))
    found: OtherNames = set()
    for place, (number, objects) in enumerate(left):
        outside = {o for o in objects if o.serial < age and o not in numbers}
        found |= {(number, other) for other in outside}
        inside = objects - outside
        found |= {(number, n) for n, others in left[:place] if n != number and inside & others}
    return found


@contextmanager
def related_names(given: Sequence[Argument], names: OtherNames) -> Iterator[None]:
    """In an iteration: once one of two objects that may be the same is changed, the other must not
    be read."""
    objects = list(_objects_in(given))
    before: dict[Mutable, tuple[Mutable, ...]] = {}
    for number, other in names:
        pair = (objects[number], objects[other] if isinstance(other, int) else other)
        for one, same in (pair, pair[::-1]):
            before.setdefault(one, one.other_names)
            one.other_names = (*one.other_names, same)
    try:
        yield
    finally:
        for one, objects_before in before.items():
            one.other_names = objects_before


def _objects_in(arguments: Sequence[Argument]) -> Iterator[Mutable]:
    for argument in arguments:
        for found, _ in _pairs(argument, argument):
            yield found


def _may_be(argument: Mutable, given: Container[Mutable]) -> set[Mutable]:
    """Itself and the objects that it may be, by other names too if it is an input."""
    return reachable(
        [argument], lambda one: (*one.maybe_of, *(one.other_names if one in given else ()))
    )


def _pairs(result: Argument, side: Argument) -> Iterator[tuple[Mutable, Mutable]]:
    result, side = (a.content if isinstance(a, MaybeNone) else a for a in (result, side))
    if isinstance(result, Mutable) and isinstance(side, Mutable):
        yield result, side
        result, side = result.held, side.held
    if isinstance(result, tuple) and isinstance(side, tuple):
        for one, other in zip(result, side, strict=False):
            yield from _pairs(one, other)
    elif isinstance(result, dict) and isinstance(side, dict):
        for key in (key for key in result if key in side):
            yield from _pairs(result[key], side[key])
