"""Memory, and what tensors see of it: each tensor is a chain of views of one base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sardonyx.aten.graph import Node, SourceLocation, Value
from sardonyx.functionalization.views import Link, ViewLink, is_reshape

Chain: TypeAlias = tuple[Link, ...]


@dataclass(slots=True, eq=False)
class Base:
    """A piece of memory: its content now, and how often it was written."""

    root: Value
    current: Value
    version: int = 0
    uncertain_since: SourceLocation | None = None
    """Where a tensor was written that may, or may not, share this memory."""
    may_repeat: bool = False
    """Whether it is a list of which two items may be one tensor."""
    made_by: Node | None = None
    """The node that made a list. Its items may have been written since."""


@dataclass(slots=True, eq=False)
class View:
    """What a tensor sees of a base."""

    base: Base
    chain: Chain
    current: Value
    version: int
    """The version of the base that `current` was computed from; STALE for none."""

    def is_same_view(self, other: View) -> bool:
        return self.base is other.base and self.chain == other.chain


STALE = -1


def simplified(base: Base, chain: Chain) -> Chain:
    """Of consecutive reshapes only the last matters, and none to the shape of the base itself."""
    kept: list[Link] = []
    for link in chain:
        if is_reshape(link) and kept and is_reshape(kept[-1]):
            kept.pop()
        kept.append(link)
    first = kept[0] if kept else None
    if isinstance(first, ViewLink) and is_reshape(first):
        has_its_shape = list(first.arguments["size"]) == list(base.current.shape)
        del kept[: int(has_its_shape)]
    return tuple(kept)
