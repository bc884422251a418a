"""Memory, and what tensors see of it: a view of one piece, or one of several at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from sardonyx.aten.graph import Argument, Node, SourceLocation, Value
from sardonyx.functionalization.views import Link, ViewLink, is_reshape

Chain: TypeAlias = tuple[Link, ...]
Condition: TypeAlias = tuple[Value, int]
"""A selector, and the number that it is to have."""


@dataclass(slots=True, eq=False)
class Base:
    """A piece of memory: its content now, and how often it was written."""

    root: Value
    current: Value
    version: int = 0
    uncertain_since: SourceLocation | None = None
    """Where it was written under a name that may, or may not, be one of it."""
    may_repeat: bool = False
    """Whether it is a list of which two items may be one tensor."""
    made_by: Node | None = None
    """Of a list: of what it was made, which may be written since."""


class Place(NamedTuple):
    """What a view sees, apart from what it holds."""

    base: Base
    chain: Chain

    def is_same(self, other: Place) -> bool:
        return (
            self.base is other.base
            and len(self.chain) == len(other.chain)
            and all(map(_is_same_link, self.chain, other.chain))
        )

    def is_view_of(self, other: Place) -> bool:
        """Whether it is seen to be a part of another, or to lie otherwise."""
        further = self.chain[len(other.chain) :]
        return (
            self.base is other.base
            and not all(map(is_reshape, further))
            and all(map(_is_same_link, self.chain, other.chain))
        )


def place_of(base: Base, chain: Chain) -> Place:
    """Of several shapes in a row only the last matters, and none that the base has itself."""
    kept: list[Link] = []
    for link in chain:
        if is_reshape(link) and kept and is_reshape(kept[-1]):
            kept.pop()
        kept.append(link)
    first = kept[0] if kept else None
    if isinstance(first, ViewLink) and is_reshape(first):
        has_its_shape = list(first.arguments["size"]) == list(base.current.shape)
        del kept[: int(has_its_shape)]
    return Place(base, tuple(kept))


def _is_same_link(left: Link, right: Link) -> bool:
    if isinstance(left, ViewLink) and isinstance(right, ViewLink):
        return (left.op, left.index) == (right.op, right.index) and left.others() == right.others()
    return left == right


def are_apart(left: Place, right: Place) -> bool:
    """Whether two places of one base are seen to have nothing in common."""
    for one, other in zip(left.chain, right.chain, strict=False):
        if not _is_same_link(one, other):
            return (
                isinstance(one, ViewLink)
                and isinstance(other, ViewLink)
                and one.name == other.name == "aten::select"
                and one.arguments["dim"] == other.arguments["dim"]
                and _are_other_places(one.arguments["index"], other.arguments["index"])
            )
    return False


def _are_other_places(left: Argument, right: Argument) -> bool:
    if not isinstance(left, int) or not isinstance(right, int):
        return False
    return left != right and (left < 0) == (right < 0)


@dataclass(slots=True, eq=False)
class View:
    """What a tensor sees of memory: a place; or one of several, that whose number `selector` is at
    run time."""

    places: tuple[Place, ...]
    current: Value
    versions: tuple[int, ...]
    """Of the memory of the places, where `current` is what they hold."""
    selector: Value | None = None
    numbers: tuple[int, ...] = ()
    is_dense: bool = True
    """Of what is chosen: whether it lies in memory without gaps, whichever it is."""

    @property
    def is_chosen(self) -> bool:
        return self.selector is not None

    @property
    def bases(self) -> Sequence[Base]:
        return list(dict.fromkeys(place.base for place in self.places))

    @property
    def options(self) -> list[tuple[Condition | None, Place]]:
        """The places, each with the condition of its being the one."""
        if self.selector is None:
            return [(None, place) for place in self.places]
        conditions = [(self.selector, number) for number in self.numbers]
        return list(zip(conditions, self.places, strict=True))

    def versions_now(self) -> tuple[int, ...]:
        return tuple(place.base.version for place in self.places)
