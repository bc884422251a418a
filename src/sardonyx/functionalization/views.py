"""Primitive view operators: how each is applied again, and how a write goes back to its source.

`VIEWS` maps an ATen view to the pure update of its source: given the source and the new content
of the view, the new source. Composite views (movedim, chunk, flatten ...) are chains of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch

from sardonyx.aten.graph import Argument, Dim, TensorType, Value
from sardonyx.errors import CaptureError

AS_STRIDED = "aten::as_strided"


class AliasError(CaptureError):
    """A view or a write that cannot be expressed; functionalization adds the source location."""


class Emit(Protocol):
    """Adds one pure call to the graph and returns one of its results, the first by default."""

    def __call__(
        self,
        op: Any,
        *args: Argument,
        result_index: int = 0,
        **kwargs: Argument,
    ) -> Value: ...


@dataclass(frozen=True, slots=True)
class ViewLink:
    """One primitive view: `op(source, ...)[index]`."""

    op: Any
    arguments: dict[str, Argument]
    index: int

    @property
    def name(self) -> str:
        return str(self.op._schema.name)

    @property
    def shows_elements_again(self) -> bool:
        """Whether an element of the source may appear several times in the view."""
        if self.name == "aten::unfold":
            size, step = self.arguments["size"], self.arguments["step"]
            return not (isinstance(size, int) and isinstance(step, int)) or step < size
        return self.name == "aten::expand"

    def others(self) -> dict[str, Argument]:
        return {k: a for k, a in self.arguments.items() if k != "self"}


@dataclass(frozen=True, slots=True)
class Strided:
    """`as_strided` of a base whose memory, in the order `perm` of its axes, has no gaps."""

    perm: tuple[int, ...]
    size: tuple[Dim, ...]
    stride: tuple[Dim, ...]
    offset: Dim
    """From the first element of the base."""

    def apply(self, emit: Emit, base: Value) -> Value:
        line = self._line(emit, base)
        return emit(torch.ops.aten.index.Tensor, line, [self._places(emit)])

    def write_back(self, emit: Emit, base: Value, content: Value) -> Value:
        if self._repeats():
            raise AliasError("a write through a view that shows an element several times")
        line = self._line(emit, base)
        written = emit(torch.ops.aten.index_put.default, line, [self._places(emit)], content)
        lying = emit(torch.ops.aten.reshape.default, written, [base.shape[a] for a in self.perm])
        back = [self.perm.index(a) for a in range(base.type.rank)]
        return emit(torch.ops.aten.permute.default, lying, back)

    def _line(self, emit: Emit, base: Value) -> Value:
        lying = emit(torch.ops.aten.permute.default, base, list(self.perm))
        return emit(torch.ops.aten.reshape.default, lying, [math.prod(base.shape)])

    def _places(self, emit: Emit) -> Value:
        return grid(emit, self.size, self.stride, self.offset)

    def _repeats(self) -> bool:
        """Whether two elements may be one. With symbolic sizes, unless each stride is known to step
        over everything that the smaller ones reach."""
        if all(isinstance(d, int) for d in (*self.size, *self.stride)):
            places = _grid_of_numbers(self.size, self.stride, 0)
            return len(set(places.flatten().tolist())) != places.numel()
        if not all(isinstance(d, int) for d in self.stride):
            return True
        reached: Dim = 0
        for step, length in sorted(
            zip(self.stride, self.size, strict=True), key=lambda axis: int(axis[0])
        ):
            if not isinstance(reached, int) or int(step) <= reached:
                return True
            reached += int(step) * (length - 1)
        return False


def grid(emit: Emit, size: Sequence[Dim], stride: Sequence[Dim], offset: Dim) -> Value:
    """The tensor of `offset + sum(index * stride)`."""
    if all(isinstance(d, int) for d in (*size, *stride, offset)):
        places = _grid_of_numbers(size, stride, offset)
        return Value("places", TensorType(places.dtype, tuple(places.shape)), constant=places)
    total = emit(torch.ops.aten.full.default, [1] * len(size), offset, dtype=torch.int64)
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        along = emit(torch.ops.aten.arange.default, length, dtype=torch.int64)
        steps = emit(torch.ops.aten.mul.Scalar, along, step)
        shape = [length if a == axis else 1 for a in range(len(size))]
        total = emit(
            torch.ops.aten.add.Tensor, total, emit(torch.ops.aten.reshape.default, steps, shape)
        )
    return total


def _grid_of_numbers(size: Sequence[Any], stride: Sequence[Any], offset: Any) -> torch.Tensor:
    places = torch.full([1] * len(size), offset)
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        places = places + (torch.arange(length) * step).reshape(
            [-1 if a == axis else 1 for a in range(len(size))]
        )
    return places


Link: TypeAlias = ViewLink | Strided
Update = Callable[[Emit, ViewLink, Value, Value], Value]


def apply(emit: Emit, link: Link, source: Value) -> Value:
    """The view `link` of `source`."""
    if isinstance(link, Strided):
        return link.apply(emit, source)
    if is_reshape(link):
        # The new content may have other strides than the old one.
        return emit(torch.ops.aten.reshape.default, source, link.arguments["size"])
    if link.name == "aten::_neg_view":
        return emit(torch.ops.aten.neg.default, source)
    if link.name in _NEEDS_ITS_LAYOUT and not (source.fake is None or source.fake.is_contiguous()):
        source = emit(torch.ops.aten.clone.default, source, memory_format=torch.contiguous_format)
    return emit(link.op, source, result_index=link.index, **link.others())


def is_reshape(link: Link) -> bool:
    return isinstance(link, ViewLink) and link.name in _RESHAPES and "size" in link.arguments


_RESHAPES = frozenset({"aten::view", "aten::_unsafe_view", "aten::_reshape_alias"})
_NEEDS_ITS_LAYOUT = frozenset({"aten::view", "aten::view_as_complex"})


def write_back(emit: Emit, link: Link, source: Value, content: Value) -> Value:
    """The source after `content` was written through the view `link` of it."""
    if isinstance(link, Strided):
        return link.write_back(emit, source, content)
    update = VIEWS.get(link.name)
    if update is None:
        raise AliasError(f"a write through {link.name} cannot be expressed")
    return update(emit, link, source, content)


def _same(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    return content


def _reshape(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    return emit(torch.ops.aten.reshape.default, content, list(source.shape))


def _permute(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    dims = [d % source.type.rank for d in link.arguments["dims"]]
    return emit(torch.ops.aten.permute.default, content, [dims.index(i) for i in range(len(dims))])


def _transpose(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    if "dim0" in link.arguments:
        dims = (link.arguments["dim0"], link.arguments["dim1"])
        return emit(torch.ops.aten.transpose.int, content, *dims)
    return content if source.type.rank < 2 else emit(torch.ops.aten.transpose.int, content, 0, 1)


def _scatter(op: Any) -> Update:
    def update(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
        return emit(op, source, content, **link.others())

    return update


def _unbind(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    return emit(
        torch.ops.aten.select_scatter.default, source, content, link.arguments["dim"], link.index
    )


def _split(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    dim = link.arguments["dim"]
    sizes: Any = link.arguments["split_sizes" if "split_sizes" in link.arguments else "split_size"]
    start = sum(sizes[: link.index]) if isinstance(sizes, list) else sizes * link.index
    end = start + content.shape[dim]
    return emit(torch.ops.aten.slice_scatter.default, source, content, dim, start, end)


def _unfold(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    dim = link.arguments["dimension"] % max(source.type.rank, 1)
    size, step = link.arguments["size"], link.arguments["step"]
    if source.type.rank == 0:
        return _reshape(emit, link, source, content)
    count = content.shape[dim]
    windows = emit(torch.ops.aten.movedim.int, content, -1, dim + 1)
    flat = emit(torch.ops.aten.flatten.using_ints, windows, dim, dim + 1)
    if step == size:
        return emit(torch.ops.aten.slice_scatter.default, source, flat, dim, 0, count * size)
    places = emit(
        torch.ops.aten.reshape.default, grid(emit, (count, size), (step, 1), 0), [count * size]
    )
    return emit(torch.ops.aten.index_copy.default, source, dim, places, flat)


def _inverse(op: Any) -> Update:
    return lambda emit, link, source, content: emit(op, content)


def _view(emit: Emit, link: ViewLink, source: Value, content: Value) -> Value:
    if "dtype" in link.arguments:
        return emit(torch.ops.aten.view.dtype, content, source.dtype)
    return _reshape(emit, link, source, content)


VIEWS: dict[str, Update] = {
    "aten::alias": _same,
    "aten::detach": _same,
    "aten::lift_fresh": _same,
    "aten::view": _view,
    "aten::_unsafe_view": _reshape,
    "aten::_reshape_alias": _reshape,
    "aten::_reshape_from_tensor": _reshape,
    "aten::unsqueeze": _reshape,
    "aten::squeeze": _reshape,
    "aten::permute": _permute,
    "aten::transpose": _transpose,
    "aten::t": _transpose,
    "aten::expand": _reshape,
    "aten::select": _scatter(torch.ops.aten.select_scatter.default),
    "aten::slice": _scatter(torch.ops.aten.slice_scatter.default),
    "aten::diagonal": _scatter(torch.ops.aten.diagonal_scatter.default),
    "aten::unbind": _unbind,
    "aten::split": _split,
    "aten::split_with_sizes": _split,
    "aten::unsafe_split": _split,
    "aten::unsafe_split_with_sizes": _split,
    "aten::unfold": _unfold,
    "aten::view_as_real": _inverse(torch.ops.aten.view_as_complex.default),
    "aten::view_as_complex": _inverse(torch.ops.aten.view_as_real.default),
    "aten::_neg_view": _inverse(torch.ops.aten.neg.default),
    "aten::_conj": _inverse(torch.ops.aten._conj.default),
}
