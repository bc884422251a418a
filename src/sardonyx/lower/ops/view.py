"""Views: the same elements under another shape or order."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange, axis_of
from sardonyx.lower.kernels.windows import floor_divided
from sardonyx.lower.onnx_types.schemas import onnx_dtype
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dims, Ints, Tensor, product_of

# -- shape -----------------------------------------------------------------------------------------


@lowering(
    "aten::view",
    "aten::_unsafe_view",
    "aten::view_copy",
    "aten::_reshape_copy",
    "aten::_reshape_alias",
    "aten::_reshape_alias_copy",
)
@lowering("aten::reshape", renamed={"shape": "size"})
def view(b: Builder, self: Tensor, size: Dims, stride: Dims | None = None) -> Tensor:
    # The strides are those of a contiguous result over the same memory.
    return b.reshape(self, size)


@lowering("aten::reshape_as", "aten::view_as")
def reshape_as(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    return b.reshape(self, b.dims(other))


@lowering("aten::_reshape_from_tensor")
def reshape_from_tensor(b: Builder, self: Tensor, shape: Tensor) -> Tensor:
    return b.Reshape(self, b.cast(shape, torch.int64), allowzero=1)


@lowering("aten::_shape_as_tensor")
def shape_as_tensor(b: Builder, self: Tensor) -> Tensor:
    return b.Shape(self)


@lowering("aten::view.dtype", "aten::view_copy.dtype")
def view_dtype(b: Builder, self: Tensor, dtype: torch.dtype) -> Tensor:
    if dtype == self.dtype:
        return self
    if dtype.itemsize != self.dtype.itemsize:
        raise b.refuse(f"the bits of {self.dtype} cannot be read as the wider or narrower {dtype}")
    return b.BitCast(self, to=int(onnx_dtype(dtype)))


@lowering("aten::flatten.using_ints")
def flatten(b: Builder, self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    if self.rank == 0:
        return b.reshape(self, [1])
    start, end = axis_of(self, start_dim), axis_of(self, end_dim)
    dims = b.dims(self)
    merged = product_of(dims[start : end + 1])
    return b.reshape(self, [*dims[:start], merged, *dims[end + 1 :]])


@lowering("aten::expand", "aten::expand_copy")
def expand(b: Builder, self: Tensor, size: Dims) -> Tensor:
    return b.expand(self, size)


@lowering("aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims")
@lowering("aten::squeeze_copy", "aten::squeeze_copy.dim", "aten::squeeze_copy.dims")
def squeeze(b: Builder, self: Tensor, dim: Ints | int | None = None) -> Tensor:
    dims = range(self.rank) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = [axis_of(self, d) for d in dims] if self.rank else []
    # A dynamic dim stays: the recording's notes say that it holds where its size is not 1.
    return b.squeeze(self, [axis for axis in axes if self.static_dim(axis) == 1])


@lowering("aten::unsqueeze", "aten::unsqueeze_copy")
def unsqueeze(b: Builder, self: Tensor, dim: int) -> Tensor:
    return b.unsqueeze(self, [dim % (self.rank + 1)])


# -- order of dims ---------------------------------------------------------------------------------


@lowering("aten::permute", "aten::permute_copy")
def permute(b: Builder, self: Tensor, dims: Ints) -> Tensor:
    return b.transpose(self, dims)


@lowering("aten::transpose.int", "aten::transpose_copy.int")
@lowering("aten::mT", "aten::mT.a", dim0=-2, dim1=-1)
def transpose(b: Builder, self: Tensor, dim0: int, dim1: int) -> Tensor:
    if self.rank == 0:
        return self
    perm = list(range(self.rank))
    first, second = axis_of(self, dim0), axis_of(self, dim1)
    perm[first], perm[second] = second, first
    return b.transpose(self, perm)


@lowering("aten::t", "aten::t_copy")
def t(b: Builder, self: Tensor) -> Tensor:
    return self if self.rank < 2 else b.transpose(self, [1, 0])


@lowering("aten::pixel_shuffle")
def pixel_shuffle(b: Builder, self: Tensor, upscale_factor: int) -> Tensor:
    r = upscale_factor
    if self.rank == 4 and self.dtype.to_real() in (torch.float32, torch.float64, torch.float16):
        return b.DepthToSpace(self, blocksize=r, mode="CRD")
    *batch, channels, height, width = b.dims(self)
    n = len(batch)
    deep = floor_divided(channels, r * r)
    split = b.reshape(self, [*batch, deep, r, r, height, width])
    woven = b.transpose(split, [*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return b.reshape(woven, [*batch, deep, height * r, width * r])


# -- diagonals and windows -------------------------------------------------------------------------


@lowering("aten::diagonal", "aten::diagonal_copy")
def diagonal_of(b: Builder, self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    flat, positions = matrices_flat(b, self, offset, dim1, dim2)
    return b.Gather(flat, positions, axis=-1)


def diagonal_perm(x: Tensor, dim1: int, dim2: int) -> list[int]:
    """The order of dims that has the rows and columns of the matrices last."""
    rows, columns = dim1 % x.rank, dim2 % x.rank
    return [*(axis for axis in range(x.rank) if axis not in (rows, columns)), rows, columns]


def matrices_flat(
    b: Builder, x: Tensor, offset: int, dim1: int, dim2: int
) -> tuple[Tensor, Tensor]:
    """Each matrix in `x` as one last dim, and the places of its diagonal in that dim."""
    matrices = b.transpose(x, diagonal_perm(x, dim1, dim2))
    *batch, rows, columns = b.dims(matrices)
    flat = b.reshape(matrices, [*batch, rows * columns])
    if isinstance(rows, int) and isinstance(columns, int):
        length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
        start = offset if offset >= 0 else -offset * columns
        places = start + torch.arange(max(length, 0)) * (columns + 1)
        return flat, b.const(places)
    r, c = b.scalar(rows), b.scalar(columns)
    if offset >= 0:
        longest, first = b.Min(r, b.Sub(c, offset)), b.scalar(offset)
    else:
        longest, first = b.Min(b.Add(r, offset), c), b.Mul(c, -offset)
    steps = arange(b, b.reshape(b.Max(longest, 0), [1]))
    return flat, b.Add(b.Mul(steps, b.Add(c, 1)), first)


@lowering("aten::diag_embed")
def diag_embed(b: Builder, self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    size = self.dim(-1) + abs(offset)
    columns = self
    if offset:
        zeros = b.full([*b.dims(self)[:-1], abs(offset)], 0, self.dtype)
        columns = b.Concat(*((zeros, self) if offset > 0 else (self, zeros)), axis=-1)
    places = arange(b, size)
    on_diagonal = b.Equal(b.unsqueeze(b.Add(places, offset), [1]), b.unsqueeze(places, [0]))
    spread = b.unsqueeze(columns, [self.rank - 1])
    if self.dtype == torch.bool:
        matrices = b.And(on_diagonal, spread)
    else:
        matrices = b.Where(on_diagonal, spread, b.scalar(0, self.dtype))
    perm = diagonal_perm(matrices, dim1, dim2)
    return b.transpose(matrices, [perm.index(axis) for axis in range(matrices.rank)])


@lowering("aten::diag")
def diag(b: Builder, self: Tensor, diagonal: int = 0) -> Tensor:
    return diag_embed(b, self, diagonal) if self.rank == 1 else diagonal_of(b, self, diagonal)


@lowering("aten::unfold", "aten::unfold_copy")
def unfold(b: Builder, self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    if self.rank == 0:
        single = b.reshape(self, [1])
        return single if size == 1 else b.slice(single, 0, 0, size)
    axis = axis_of(self, dimension)
    length = self.dim(axis)
    within = torch.arange(size)
    if isinstance(length, int):
        starts = torch.arange(0, length - size + 1, step)
        indices = b.const(starts[:, None] + within)
    else:
        windows = b.Add(b.Div(b.Sub(b.size(length), size), step), 1)
        indices = b.Add(b.unsqueeze(b.Mul(arange(b, windows), step), [1]), b.const(within))
    gathered = b.Gather(self, indices, axis=axis)
    perm = [a for a in range(gathered.rank) if a != axis + 1]
    return b.transpose(gathered, [*perm, axis + 1])
