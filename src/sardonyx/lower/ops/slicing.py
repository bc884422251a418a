"""Pieces of a tensor: select, slice, narrow, split and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import sympy

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import axis_of, from_front, is_number, plus
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Dims, Ints, Tensor, plain

_TO_THE_END = 2**63 - 1
"""What PyTorch writes as the end of a slice that has none."""


@lowering("aten::select.int", "aten::select_copy.int")
def select(b: Builder, self: Tensor, dim: int, index: Dim) -> Tensor:
    return b.Gather(self, b.scalar(index), axis=axis_of(self, dim))


@lowering("aten::slice.Tensor", "aten::slice_copy.Tensor")
def slice_(
    b: Builder,
    self: Tensor,
    dim: int = 0,
    start: Dim | None = None,
    end: Dim | None = None,
    step: Dim = 1,
) -> Tensor:
    axis = axis_of(self, dim)
    size = self.dim(axis)
    begins = start is None or is_number(start, 0)
    ends = end is None or end == size or is_number(end, _TO_THE_END)
    if isinstance(size, int) and isinstance(end, int):
        ends = end >= size
    if begins and ends and step == 1:
        return self
    return b.slice(self, axis, 0 if start is None else start, None if ends else end, step)


@lowering("aten::narrow", "aten::narrow_copy", "aten::narrow.Tensor")
def narrow(b: Builder, self: Tensor, dim: int, start: Dim | Tensor, length: Dim) -> Tensor:
    axis = axis_of(self, dim)
    first = from_front(b, start, self.dim(axis))
    return b.slice(self, axis, first, plus(b, first, length))


# -- several pieces --------------------------------------------------------------------------------


def split_at_sizes(b: Builder, x: Tensor, sizes: Sequence[Dim], axis: int) -> list[Tensor]:
    if len(sizes) < 2:
        return [x] * len(sizes)
    pieces = b.Split(x, b.shape(sizes), axis=axis, outputs=len(sizes))
    dims = b.dims(x)
    return [
        b.with_shape(piece, [*dims[:axis], size, *dims[axis + 1 :]])
        for piece, size in zip(pieces, sizes, strict=True)
    ]


@lowering(
    "aten::split",
    "aten::split_with_sizes",
    "aten::unsafe_split_with_sizes",
    "aten::split_with_sizes_copy",
)
@lowering("aten::split.sizes", renamed={"split_size": "split_sizes"})
def split_with_sizes(b: Builder, self: Tensor, split_sizes: Dims, dim: int = 0) -> list[Tensor]:
    return split_at_sizes(b, self, split_sizes, axis_of(self, dim))


@lowering("aten::split.Tensor", "aten::unsafe_split.Tensor", "aten::split_copy.Tensor")
def split(b: Builder, self: Tensor, split_size: Dim, dim: int = 0) -> list[Tensor]:
    axis = axis_of(self, dim)
    size = _recorded_size(self.dim(axis))
    if size == split_size:
        return [self]
    if isinstance(size, int) and isinstance(split_size, int):
        return split_at_sizes(b, self, _even_sizes(size, split_size), axis)
    count = sympy.simplify(sympy.sympify(size) / split_size)
    if not count.is_Integer:
        raise b.refuse(
            f"the number of pieces of {split_size} that dim {axis} of size {size} has is not "
            "known at export time"
        )
    return split_at_sizes(b, self, [split_size] * int(count), axis)


def _recorded_size(size: Dim) -> Dim:
    """Of a piece such as x[:5] the size it has unless x is too short: the number of tensors that
    it was taken apart into is that one. At run time a shorter one has no such elements."""
    numbers = [int(a) for a in size.args if a.is_Integer] if _is_least(size) else []
    return numbers[0] if numbers else size


def _is_least(size: Dim) -> TypeGuard[sympy.Expr]:
    return isinstance(size, sympy.Expr) and type(size).__name__ == "Min"


def _even_sizes(size: int, piece: int) -> list[int]:
    if piece == 0:
        return [0]
    count = max(-(-size // piece), 1)
    return [piece] * (count - 1) + [size - piece * (count - 1)]


@lowering("aten::chunk", "aten::unsafe_chunk")
def chunk(b: Builder, self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    axis = axis_of(self, dim)
    size = self.dim(axis)
    if isinstance(size, int):
        piece = -(-size // chunks)
        # A dim of size 0 gives `chunks` empty tensors.
        sizes = _even_sizes(size, piece) if piece else [0] * chunks
        return split_at_sizes(b, self, sizes, axis)
    piece_size = b.Div(b.Add(b.size(size), chunks - 1), chunks)
    bounds = [b.Mul(piece_size, k) for k in range(chunks + 1)]
    return [b.slice(self, axis, bounds[k], bounds[k + 1]) for k in range(chunks)]


@lowering("aten::tensor_split.sections")
def tensor_split(b: Builder, self: Tensor, sections: int, dim: int = 0) -> list[Tensor]:
    axis = axis_of(self, dim)
    size = self.dim(axis)
    if isinstance(size, int):
        least, longer = divmod(size, sections)
        sizes = [least + 1] * longer + [least] * (sections - longer)
        return split_at_sizes(b, self, sizes, axis)
    exact = plain(sympy.expand(size / sections))
    if isinstance(exact, sympy.Expr) and exact.is_integer:
        return split_at_sizes(b, self, [exact] * sections, axis)
    least_size, longer_count = b.Div(b.size(size), sections), b.Mod(b.size(size), sections)
    bounds = [
        b.Add(b.Mul(least_size, k), b.Min(longer_count, b.size(k))) for k in range(sections + 1)
    ]
    return [b.slice(self, axis, bounds[k], bounds[k + 1]) for k in range(sections)]


@lowering("aten::tensor_split.indices")
def tensor_split_at(b: Builder, self: Tensor, indices: Dims, dim: int = 0) -> list[Tensor]:
    starts: list[Dim] = [0, *indices]
    ends: list[Dim | None] = [*indices, None]
    return [slice_(b, self, dim, s, e) for s, e in zip(starts, ends, strict=True)]


@lowering("aten::tensor_split.tensor_indices_or_sections")
def tensor_split_by_tensor(
    b: Builder, self: Tensor, tensor_indices_or_sections: Tensor, dim: int = 0
) -> list[Tensor]:
    known = tensor_indices_or_sections.const
    if known is not None and known.dim() == 0:
        return tensor_split(b, self, int(known), dim)
    if known is not None:
        return tensor_split_at(b, self, [int(i) for i in known], dim)
    count = tensor_indices_or_sections.static_dim(0) if tensor_indices_or_sections.rank else None
    if count is None:
        raise b.refuse("how many pieces there are is computed by the model")
    axis = axis_of(self, dim)
    bounds = [b.slice(tensor_indices_or_sections, 0, k, k + 1) for k in range(count)]
    starts: list[Dim | Tensor] = [0, *bounds]
    return [b.slice(self, axis, s, e) for s, e in zip(starts, [*bounds, None], strict=True)]


@lowering("aten::unbind.int", "aten::unbind_copy.int")
def unbind(b: Builder, self: Tensor, dim: int = 0) -> list[Tensor]:
    axis = axis_of(self, dim)
    count = _recorded_size(self.dim(axis))
    if not isinstance(count, int):
        raise b.refuse(f"dim {axis} has the dynamic size {count}: so many tensors")
    if count == 1:
        return [b.squeeze(self, [axis])]
    return [select(b, self, axis, index) for index in range(count)]


# -- reading elements in another order -------------------------------------------------------------


@lowering("aten::flip")
def flip(b: Builder, self: Tensor, dims: Ints) -> Tensor:
    axes = [axis_of(self, d) for d in dims]
    if not axes or self.rank == 0:
        return self
    return b.Slice(self, [-1] * len(axes), [-(2**63)] * len(axes), axes, [-1] * len(axes))


@lowering("aten::roll")
def roll(b: Builder, self: Tensor, shifts: Dims, dims: Ints) -> Tensor:
    if not dims:
        line = b.reshape(self, [b.numel(self)])
        return b.reshape(_roll_axis(b, line, shifts[0], 0), b.dims(self))
    rolled = self
    for shift, dim in zip(shifts, dims, strict=True):
        if self.rank:
            rolled = _roll_axis(b, rolled, shift, axis_of(self, dim))
    return rolled


def _roll_axis(b: Builder, x: Tensor, shift: Dim, axis: int) -> Tensor:
    size = x.dim(axis)
    if isinstance(size, int) and isinstance(shift, int):
        cut: Dim | Tensor = -shift % max(size, 1)
        if is_number(cut, 0):
            return x
    else:
        cut = b.Mod(b.size(-shift), b.Max(b.size(size), b.size(1)))
    joined = b.Concat(b.slice(x, axis, cut, None), b.slice(x, axis, 0, cut), axis=axis)
    return b.with_shape(joined, b.dims(x))
