"""Writes to a view as pure updates of its base; what functionalization makes of x[...] = y."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.advanced_indexing import scatter_along
from sardonyx.lower.kernels.axes import (
    arange,
    axis_of,
    from_front,
    is_number,
    plus,
    slice_start,
)
from sardonyx.lower.ops.view import diagonal_perm, matrices_flat
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Tensor


@lowering("aten::select_scatter")
def select_scatter(b: Builder, self: Tensor, src: Tensor, dim: int, index: Dim) -> Tensor:
    axis = axis_of(self, dim)
    piece = b.unsqueeze(b.cast(src, self.dtype), [axis])
    if axis == 0 or is_number(self.dim(axis), 1):
        if is_number(self.dim(axis), 1):
            return piece
        return b.ScatterND(self, b.reshape(b.scalar(index), [1, 1]), piece)
    return _with_piece(b, self, piece, axis, from_front(b, index, self.dim(axis)))


@lowering("aten::slice_scatter")
def slice_scatter(
    b: Builder,
    self: Tensor,
    src: Tensor,
    dim: int = 0,
    start: Dim | None = None,
    end: Dim | None = None,
    step: Dim = 1,
) -> Tensor:
    # The length of `src` says where the slice ends, so `end` need not be clamped.
    axis = axis_of(self, dim)
    piece = b.cast(src, self.dtype)
    first = slice_start(b, start, self.dim(axis))
    if step == 1:
        return _with_piece(b, self, piece, axis, first)
    if is_number(piece.dim(axis), 0):
        return self
    places = b.Mul(arange(b, piece.dim(axis)), step if isinstance(step, int) else b.size(step))
    if isinstance(first, Tensor) or first != 0:
        places = b.Add(places, b.size(first))
    return scatter_along(b, self, axis, places, piece)


def _with_piece(b: Builder, x: Tensor, piece: Tensor, axis: int, start: Dim | Tensor) -> Tensor:
    """`x` with `piece` over its elements from `start` on along `axis`."""
    size, length = x.dim(axis), piece.dim(axis)
    if is_number(length, 0):
        return x
    if length == size:
        return piece
    end = plus(b, start, length)
    parts = [piece]
    if not is_number(start, 0):
        parts.insert(0, b.slice(x, axis, 0, start))
    if isinstance(end, Tensor) or end != size:
        parts.append(b.slice(x, axis, end, None))
    joined = b.Concat(*parts, axis=axis)
    return b.with_shape(joined, b.dims(x))


@lowering("aten::diagonal_scatter")
def diagonal_scatter(
    b: Builder, self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    flat, places = matrices_flat(b, self, offset, dim1, dim2)
    written = scatter_along(b, flat, flat.rank - 1, places, b.cast(src, self.dtype))
    perm = diagonal_perm(self, dim1, dim2)
    matrices = b.reshape(written, [self.dim(axis) for axis in perm])
    return b.transpose(matrices, [perm.index(axis) for axis in range(self.rank)])
