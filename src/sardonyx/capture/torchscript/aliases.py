"""Which lists, dicts and objects of a TorchScript program may be one and the same.

After a branch or a loop a variable holds a new object, with what either side left in it. Where the
program would hold the object of one side itself, a change of the one is a change of the other: that
cannot be followed, and is refused when it is seen.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sardonyx.capture.graph import Argument
from sardonyx.capture.torchscript.values import MaybeNone, Mutable


def settled(argument: Argument, changes: dict[Mutable, Any]) -> Argument:
    """What was read in a block, with the states that its objects had at the end of it."""
    if isinstance(argument, tuple):
        items = tuple(settled(item, changes) for item in argument)
        return items if any(a is not b for a, b in zip(items, argument, strict=True)) else argument
    if isinstance(argument, MaybeNone):
        content = settled(argument.content, changes)
        same = content is argument.content
        return argument if same else replace(argument, content=content)
    if not isinstance(argument, Mutable):
        return argument
    before = changes.get(argument, argument.held)
    after = before
    if isinstance(before, dict):
        after = {key: settled(item, changes) for key, item in before.items()}
        if all(after[key] is item for key, item in before.items()):
            after = before
    elif isinstance(before, tuple):
        after = settled(before, changes)
    if after is argument.held:
        return argument
    made = copy.copy(argument)
    made.held = after
    return made


def copied(argument: Argument) -> Argument:
    """With objects of its own, which later changes leave alone."""
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
            old.entangled = old.entangled or _CHANGED
            old.maybe = (*old.maybe, young)
            young.maybe_of = (*young.maybe_of, old)


def _pairs(result: Argument, side: Argument) -> Iterator[tuple[Mutable, Mutable]]:
    result, side = (a.content if isinstance(a, MaybeNone) else a for a in (result, side))
    if isinstance(result, Mutable) and isinstance(side, Mutable):
        yield result, side
        result, side = result.held, side.held
    if isinstance(result, tuple) and isinstance(side, tuple):
        for one, other in zip(result, side, strict=False):
            yield from _pairs(one, other)
    elif isinstance(result, dict) and isinstance(side, dict):
        for key in result.keys() & side.keys():
            yield from _pairs(result[key], side[key])


_CHANGED = (
    "a list, dict or object that another variable holds too, in one branch or iteration only, is"
    " changed afterwards: copy it there"
)
