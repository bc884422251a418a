"""Alias tracking: each tensor is a chain of views over a base, a piece of memory with a history.

Where a branch, a loop or a list decides at run time which memory a tensor is, its base is related
to all the others that it may be. After a write to one of them the others are uncertain: reading one
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple, TypeAlias

import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import UNKNOWN_LOCATION, SourceLocation, Value
from sardonyx.errors import CaptureError
from sardonyx.functionalization.fake_tensors import Origin
from sardonyx.functionalization.layout import layout_of, strided_inside
from sardonyx.functionalization.views import (
    AS_STRIDED,
    AliasError,
    Emit,
    Link,
    Strided,
    ViewLink,
    apply,
    is_reshape,
    write_back,
)

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


AliasState: TypeAlias = tuple[
    dict[Value, tuple[View, Value, int]],
    dict[Base, tuple[Value, int, SourceLocation | None]],
]


class Changes(NamedTuple):
    """What happened to memory since a state."""

    written: list[Base]
    marked: dict[Base, SourceLocation]
    """What became uncertain, and where."""


@dataclass(slots=True)
class AliasTracker:
    """Which values share memory, and what each holds after the writes so far."""

    emit: Emit
    fake_of: Callable[[Value], torch.Tensor]
    memory_of: Callable[[Value], torch.Tensor]
    """The first fake of a root: `transpose_` changes the strides of the root."""
    views: dict[Value, View] = field(default_factory=dict)
    related: dict[Base, set[Base]] = field(default_factory=dict)
    """Memory that may be the same: results of a branch, items of a list."""
    relations: int = 0
    read: dict[Base, SourceLocation] = field(default_factory=dict)
    """Where it was read first."""
    location: SourceLocation = UNKNOWN_LOCATION
    """Of the node that reads and writes now."""

    # -- views -----------------------------------------------------------------------------------

    def view_of(self, value: Value) -> View:
        if value not in self.views:
            self.views[value] = View(Base(value, value), (), value, 0)
        return self.views[value]

    def base_of(self, value: Value) -> Base:
        return self.view_of(value).base

    def add_view(self, value: Value, origin: Origin) -> None:
        """`value` is a view of its origin, computed from what the origin holds now."""
        source = self.view_of(origin.source)
        base, chain, version = source.base, source.chain, source.base.version
        for link in origin.links:
            if link.name == AS_STRIDED:
                # A view of the memory, not of the tensor; it is recomputed from there.
                chain, version = (_strided(self.memory_of(base.root), link),), STALE
            else:
                chain = (*chain, link)
        self.views[value] = View(base, _simplified(base, chain), value, version)

    def current(self, value: Value) -> Value:
        """What `value` holds now: itself, or its views applied again to the written base."""
        if value not in self.views:
            return value
        view = self.views[value]
        base = view.base
        self.read.setdefault(base, self.location)
        if base.uncertain_since is not None:
            raise self.uncertain(base.uncertain_since)
        if view.version != base.version:
            view.current, view.version = base.current, base.version
            for link in view.chain:
                view.current = apply(self.emit, link, view.current)
        return view.current

    # -- writes ----------------------------------------------------------------------------------

    def write(self, value: Value, content: Value) -> None:
        """Writes `content` through the view that `value` is; every other view sees it."""
        view = self.view_of(value)
        base = view.base
        if base.uncertain_since is not None:
            raise self.uncertain(base.uncertain_since)
        if base.may_repeat:
            raise AliasError(
                "an item of a list of dynamic length is written, and may share its memory with"
                " other items: set the item to a new tensor instead"
            )
        self.set_content(base, self._written(self._writable(value, view), base.current, content))
        view.current, view.version = content, base.version

    def set_content(self, base: Base, content: Value) -> None:
        """Memory that may be the same is uncertain from here on."""
        for other in self.related.get(base, ()):
            other.uncertain_since = other.uncertain_since or self.location
        base.current = content
        base.version += 1

    def replace(self, value: Value, content: Value) -> None:
        """The memory of `value` is resized to hold `content`."""
        view = self.view_of(value)
        base = view.base
        if view.chain or any(v.base is base and v is not view for v in self.views.values()):
            raise AliasError(
                "out= has another shape than the result, and is a view or has views, whose content"
                " after the resize cannot be expressed"
            )
        self.set_content(base, content)
        view.current, view.version = content, base.version

    def _writable(self, value: Value, view: View) -> Chain:
        """The chain; as one strided view where a link shows elements more than once."""
        chain, base = view.chain, view.base
        if not any(isinstance(k, ViewLink) and k.shows_elements_again for k in chain):
            return chain
        fake, memory = self.fake_of(value), self.memory_of(base.root)
        link = None
        if fake.dtype == memory.dtype:
            sizes, strides = layout_of(fake)
            offset = _torch_private.dim_of(fake.storage_offset() - memory.storage_offset())
            link = strided_inside(memory, tuple(sizes), tuple(strides), offset)
        if link is None:
            raise AliasError("a write through a view that shows an element several times")
        return (link,)

    def _written(self, chain: Chain, source: Value, content: Value) -> Value:
        if not chain:
            return content
        first, rest = chain[0], chain[1:]
        inner = self._written(rest, apply(self.emit, first, source), content) if rest else content
        return write_back(self.emit, first, source, inner)

    # -- memory that may be the same -------------------------------------------------------------

    def relate(self, left: Base, right: Base) -> None:
        if not self.are_related(left, right):
            self.related.setdefault(left, set()).add(right)
            self.related.setdefault(right, set()).add(left)
            self.relations += 1

    def are_related(self, left: Base, right: Base) -> bool:
        return left is right or right in self.related.get(left, ())

    def may_share(self, value: Value, source: Value) -> None:
        """`value` is a view of the source, or a copy."""
        base, held = self.base_of(value), self.base_of(source)
        for other in (held, *self.related.get(held, ())):
            self.relate(base, other)

    def relate_results(
        self,
        results: Sequence[Base],
        indices: Iterable[int],
        returned: Sequence[Base | None],
        inside: AbstractSet[Value] = frozenset(),
    ) -> None:
        """The results at the indices may be the memory that a block returns for them, but for
        memory that was made `inside` it; results that may be the same are related."""
        for index in indices:
            base = returned[index]
            if base is None:
                continue
            for other in (base, *self.related.get(base, ())):
                if other.root not in inside:
                    self.relate(results[index], other)
            self.inherit(results[index], base)
            for result, other_base in zip(results, returned, strict=False):
                if other_base is not None and self.are_related(base, other_base):
                    self.relate(results[index], result)

    def inherit(self, base: Base, other: Base) -> None:
        """A list is, or has the items of, another."""
        if other.may_repeat and not base.may_repeat:
            base.may_repeat = True
            self.relations += 1

    def hold_items(self, output: Value, items: Sequence[Value]) -> None:
        """A list holds the tensors that were put into it, not copies of them."""
        base, bases = self.base_of(output), [self.base_of(value) for value in items]
        base.may_repeat = any(self.are_related(*pair) for pair in combinations(bases, 2))
        for value, other in zip(items, bases, strict=True):
            self.inherit(base, other)
            self.may_share(output, value)

    def uncertain(
        self, written: SourceLocation, read: SourceLocation | None = None
    ) -> CaptureError:
        advice = (
            "write to a .clone() of one of the two, or use the operator that returns a new tensor"
            " (torch.where chooses between values)"
        )
        return CaptureError(
            "a tensor is read that may share its memory with one that was written before;"
            " whether it does depends on a branch, a loop or a list",
            [
                ("written", written.describe()),
                ("read", (read or self.location).describe()),
                ("try", advice),
            ],
        )

    # -- blocks ----------------------------------------------------------------------------------

    def state(self) -> AliasState:
        """What all values hold now, to come back to after a block."""
        return {v: (view, view.current, view.version) for v, view in self.views.items()}, {
            view.base: (view.base.current, view.base.version, view.base.uncertain_since)
            for view in self.views.values()
        }

    def restore(self, state: AliasState) -> Changes:
        """Goes back to a state, and says what changed since."""
        views, bases = state
        now = dict.fromkeys([*bases, *(view.base for view in self.views.values())])
        before = {base: bases.get(base, (base.root, 0, None)) for base in now}
        written = [base for base in now if base.version != before[base][1]]
        marked = {
            base: base.uncertain_since
            for base in now
            if base.uncertain_since is not None and before[base][2] is None
        }
        for base, (content, version, since) in bases.items():
            base.current, base.version, base.uncertain_since = content, version, since
        for view, content, version in views.values():
            view.current, view.version = content, version
        self.views = {value: view for value, (view, *_) in views.items()}
        return Changes(written, marked)


def _simplified(base: Base, chain: Chain) -> Chain:
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


def _strided(base: torch.Tensor, link: ViewLink) -> Strided:
    made = strided_inside(
        base,
        tuple(link.arguments["size"]),
        tuple(link.arguments["stride"]),
        link.arguments["storage_offset"] - _torch_private.dim_of(base.storage_offset()),
    )
    if made is None:
        raise AliasError("as_strided() of memory with gaps cannot be followed")
    return made
