"""Alias tracking: each tensor is a chain of views over a base, and a base has a history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import torch

from sardonyx import _torch_private
from sardonyx.capture.bind import bind
from sardonyx.capture.graph import UNKNOWN_LOCATION, Argument, SourceLocation, Value
from sardonyx.capture.views import VIEWS, Emit, Strided, ViewLink, apply, write_back
from sardonyx.errors import CaptureError, format_message

Chain: TypeAlias = tuple[ViewLink | Strided, ...]
AS_STRIDED = "aten::as_strided"


@dataclass(slots=True, eq=False)
class Base:
    """A piece of memory: its content now, and how often it was written."""

    root: Value
    current: Value
    version: int = 0
    uncertain_since: SourceLocation | None = None
    """Where it was written under a name that may, or may not, be one of it."""


@dataclass(slots=True, eq=False)
class View:
    base: Base
    chain: Chain
    current: Value
    version: int = 0


AliasState: TypeAlias = tuple[
    dict[Value, tuple[View, Value, int]],
    dict[Base, tuple[Value, int, SourceLocation | None]],
]


class Changes(NamedTuple):
    """What was done to memory since a state."""

    written: list[Base]
    marked: dict[Base, SourceLocation]
    """What is uncertain now, and was not, since where."""


class Origin(NamedTuple):
    """The value that a result is a view of, and the views in between."""

    source: Value
    links: tuple[ViewLink, ...]


@dataclass(slots=True)
class AliasTracker:
    """Which values share memory, and what each holds after the writes so far."""

    emit: Emit
    fake_of: Callable[[Value], torch.Tensor]
    memory_of: Callable[[Value], torch.Tensor]
    """The fake of a root as it was at first: `transpose_` changes how the root lies."""
    shared: dict[Value, tuple[Value, Strided]] = field(default_factory=dict)
    """Parameters that lie inside another one."""
    views: dict[Value, View] = field(default_factory=dict)
    related: dict[Base, set[Base]] = field(default_factory=dict)
    """Memory that may be the same: what one branch hands on, what lies in a list."""
    relations: int = 0
    read: set[Base] = field(default_factory=set)
    location: SourceLocation = UNKNOWN_LOCATION
    """What is being read or written is so there."""

    def relate(self, left: Base, right: Base) -> None:
        if not self.are_related(left, right):
            self.related.setdefault(left, set()).add(right)
            self.related.setdefault(right, set()).add(left)
            self.relations += 1

    def are_related(self, left: Base, right: Base) -> bool:
        return left is right or right in self.related.get(left, ())

    def view_of(self, value: Value) -> View:
        view = self.views.get(value)
        if view is None:
            if value in self.shared:
                whole, link = self.shared[value]
                view = View(self.view_of(whole).base, (link,), value)
            else:
                view = View(Base(value, value), (), value)
            self.views[value] = view
        return view

    def add_view(self, value: Value, origin: Origin) -> None:
        """`value` is a view of its origin, computed from what the origin holds now."""
        of = self.view_of(origin.source)
        chain: Chain = of.chain
        version = of.base.version
        for link in origin.links:
            if link.name == AS_STRIDED:
                # Sees the memory, not the tensor it is called on; and so does not compute `value`.
                chain, version = (_strided(self.memory_of(of.base.root), link),), -1
            else:
                chain = (*chain, link)
        self.views[value] = View(of.base, chain, value, version)

    def current(self, value: Value) -> Value:
        """What `value` holds now: itself, or its views applied again to the written base."""
        view = self.view_of(value) if value in self.shared else self.views.get(value)
        if view is None:
            return value
        self.read.add(view.base)
        if view.base.uncertain_since is not None:
            raise self.uncertain(view.base.uncertain_since)
        if view.version != view.base.version:
            content = view.base.current
            for link in view.chain:
                content = apply(self.emit, link, content)
            view.current, view.version = content, view.base.version
        return view.current

    def mark(self, bases: Iterable[Base]) -> None:
        """They may have been written."""
        for base in bases:
            base.uncertain_since = base.uncertain_since or self.location

    def uncertain(self, written: SourceLocation) -> CaptureError:
        return CaptureError(
            format_message(
                "a tensor is read that may share its memory with one that is written before,"
                " which depends on a branch, a loop or a list: clone() one of them",
                [("written", written.describe()), ("read", self.location.describe())],
            )
        )

    def write(self, value: Value, content: Value) -> None:
        """`content` is written to where `value` lies; every other view sees it."""
        view = self.view_of(value)
        base = view.base
        self.mark(self.related.get(base, ()))
        base.current = self._written(self._writable(value, view), base.current, content)
        base.version += 1
        view.current, view.version = content, base.version

    def replace(self, value: Value, content: Value) -> None:
        """The memory of `value` is resized to hold `content`."""
        view = self.view_of(value)
        if view.chain or any(v.base is view.base and v is not view for v in self.views.values()):
            raise CaptureError(
                "out= has another shape than the result, and is or has a view: what the others see"
                " after it is resized cannot be expressed"
            )
        view.base.current = view.current = content
        view.base.version += 1
        view.version = view.base.version

    def state(self) -> AliasState:
        """What all values hold now, to come back to after a block."""
        return {v: (view, view.current, view.version) for v, view in self.views.items()}, {
            base: (base.current, base.version, base.uncertain_since)
            for base in (view.base for view in self.views.values())
        }

    def restore(self, state: AliasState) -> Changes:
        """Back to a state; what was done since."""
        views, bases = state
        now = {view.base for view in self.views.values()} | bases.keys()
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

    def _writable(self, value: Value, view: View) -> Chain:
        """The chain, or the place in memory where a link shows elements more than once."""
        repeats = [isinstance(k, ViewLink) and k.shows_elements_again for k in view.chain]
        if not any(repeats):
            return view.chain
        made, base = self.fake_of(value), self.memory_of(view.base.root)
        link = None
        if made.dtype == base.dtype:
            sizes = tuple(map(_torch_private.dim_of, made.shape))
            strides = tuple(map(_torch_private.dim_of, made.stride()))
            offset = made.storage_offset() - base.storage_offset()
            link = strided_inside(base, sizes, strides, _torch_private.dim_of(offset))
        if link is None:
            raise CaptureError("a write through a view that shows an element several times")
        return (link,)

    def _written(self, chain: Chain, source: Value, content: Value) -> Value:
        if not chain:
            return content
        first, rest = chain[0], chain[1:]
        inner = self._written(rest, apply(self.emit, first, source), content) if rest else content
        return write_back(self.emit, first, source, inner)


def _strided(base: torch.Tensor, link: ViewLink) -> Strided:
    made = strided_inside(
        base,
        tuple(link.arguments["size"]),
        tuple(link.arguments["stride"]),
        link.arguments["storage_offset"] - _torch_private.dim_of(base.storage_offset()),
    )
    if made is None:
        raise CaptureError("as_strided() of memory with gaps cannot be followed")
    return made


def strided_inside(
    base: torch.Tensor, size: tuple[Any, ...], stride: tuple[Any, ...], offset: Any
) -> Strided | None:
    """The strided view of `base`; None where the memory of `base` has gaps or repetitions."""
    sizes = [_torch_private.dim_of(d) for d in base.shape]
    strides = [_torch_private.dim_of(d) for d in base.stride()]
    if all(isinstance(d, int) for d in (*sizes, *strides)):
        perm = sorted(range(len(sizes)), key=lambda a: (-strides[a], -sizes[a]))
    else:
        perm = list(range(len(sizes)))
    dense: Any = 1
    for axis in reversed(perm):
        if sizes[axis] != 1 and strides[axis] != dense:
            return None
        dense *= sizes[axis]
    return Strided(tuple(perm), size, stride, offset)


def origins(
    op: Any, arguments: dict[str, Argument], fakes: dict[str, Any], result: Any, mode: Any
) -> list[Origin | None]:
    """For each result of a call: what it is a view of; None for memory of its own."""
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    given = list(_pairs(list(arguments.values()), [fakes[name] for name in arguments]))
    found: list[Origin | None] = []
    for index, item in enumerate(tensors):
        sharing = [(v, f) for v, f in given if _torch_private.shares_memory(item, f)]
        if not sharing:
            found.append(None)
            continue
        same = next((v for v, f in sharing if _same_place(item, f)), None)
        if op._schema.name in VIEWS or op._schema.name == AS_STRIDED:
            found.append(Origin(arguments["self"], (_link(op, arguments, index, item),)))
        elif same is not None:
            found.append(Origin(same, ()))
        else:
            found.append(_composite_origin(op, fakes, index, sharing, mode))
    return found


def _pairs(argument: Argument, fake: Any) -> Iterator[tuple[Value, torch.Tensor]]:
    if isinstance(argument, Value):
        yield argument, fake
    elif isinstance(argument, list):
        for item, item_fake in zip(argument, fake, strict=True):
            yield from _pairs(item, item_fake)


def _link(op: Any, arguments: dict[str, Argument], index: int, result: torch.Tensor) -> ViewLink:
    if op._schema.name == AS_STRIDED:
        offset = _torch_private.dim_of(result.storage_offset())
        arguments = {**arguments, "storage_offset": offset}
    return ViewLink(op, arguments, index)


def _same_place(left: torch.Tensor, right: torch.Tensor) -> bool:
    return (
        left.dtype == right.dtype
        and left.is_conj() == right.is_conj()
        and left.is_neg() == right.is_neg()
        and left.dim() == right.dim()
        and all(_equal(a, b) for a, b in zip(left.shape, right.shape, strict=True))
        and all(_equal(a, b) for a, b in zip(left.stride(), right.stride(), strict=True))
        and _equal(left.storage_offset(), right.storage_offset())
    )


def _equal(left: Any, right: Any) -> bool:
    return bool(_torch_private.dim_of(left) == _torch_private.dim_of(right))


def _composite_origin(
    op: Any,
    fakes: dict[str, Any],
    index: int,
    sharing: list[tuple[Value, torch.Tensor]],
    mode: Any,
) -> Origin:
    """The primitive views inside a composite one, found by running it."""
    schema = op._schema.arguments
    recorded = _torch_private.record_decomposition(
        op,
        tuple(fakes[a.name] for a in schema if not a.kwarg_only),
        {a.name: fakes[a.name] for a in schema if a.kwarg_only},
        mode,
    )
    known = {id(fake): Origin(value, ()) for value, fake in sharing}
    calls, result = recorded if recorded is not None else ([], None)
    for called, args, kwargs, given in calls:
        name = called._schema.name
        if (name not in VIEWS and name != AS_STRIDED) or not args or id(args[0]) not in known:
            continue
        arguments = bind(called, _plain(args), _plain(kwargs))
        of = known[id(args[0])]
        outputs = list(given) if isinstance(given, (list, tuple)) else [given]
        for position, output in enumerate(outputs):
            link = _link(called, arguments, position, output)
            known[id(output)] = Origin(of.source, (*of.links, link))
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    found = known.get(id(tensors[index])) if index < len(tensors) else None
    if found is None:
        raise CaptureError(f"{op._schema.name} gives a view that cannot be followed")
    return found


def _plain(argument: Any) -> Any:
    if isinstance(argument, (list, tuple)):
        return [_plain(a) for a in argument]
    if isinstance(argument, dict):
        return {k: _plain(v) for k, v in argument.items()}
    return _torch_private.dim_of(argument)
