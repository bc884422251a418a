"""Reading and writing elements by index tensors and masks."""

from __future__ import annotations

import sympy
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import advanced_indexing
from sardonyx.lower.kernels.axes import (
    alike,
    at_least_1d,
    axis_of,
    choose,
    is_number,
)
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Scalar, Tensor

# -- x[indices] ------------------------------------------------------------------------------------


@lowering(
    "aten::index.Tensor",
    "aten::index.Tensor_hacked_twin",
    "aten::_unsafe_index.Tensor",
    "aten::_unsafe_index.Tensor_hacked_twin",
)
def index(b: Builder, self: Tensor, indices: list[Tensor | None]) -> Tensor:
    return advanced_indexing.take(b, self, indices)


@lowering(
    "aten::index_put",
    "aten::index_put.hacked_twin",
    "aten::_index_put_impl",
    "aten::_unsafe_index_put",
    "aten::_unsafe_index_put.hacked_twin",
)
def index_put(
    b: Builder,
    self: Tensor,
    indices: list[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    # `unsafe` leaves out a check of the indices.
    return advanced_indexing.put(b, self, indices, values, accumulate)


# -- one index tensor along one dim ----------------------------------------------------------------


@lowering("aten::index_select")
def index_select(b: Builder, self: Tensor, dim: int, index: Tensor) -> Tensor:
    taken = b.Gather(at_least_1d(b, self), at_least_1d(b, index), axis=axis_of(self, dim))
    return b.reshape(taken, []) if self.rank == 0 else taken


@lowering("aten::gather", renamed={"self": "x"})
def gather_elements(b: Builder, x: Tensor, dim: int, index: Tensor) -> Tensor:
    if any(is_number(d, 0) for d in b.dims(index)):
        return b.full(b.dims(index), 0, x.dtype)
    axis = axis_of(x, dim)
    gathered = b.GatherElements(
        at_least_1d(b, x), b.cast(at_least_1d(b, index), torch.int64), axis=axis
    )
    return b.reshape(gathered, []) if index.rank == 0 else gathered


@lowering("aten::take")
def take(b: Builder, self: Tensor, index: Tensor) -> Tensor:
    return b.Gather(b.reshape(self, [b.numel(self)]), index, axis=0)


@lowering("aten::take_along_dim")
def take_along_dim(b: Builder, self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        return take(b, self, b.reshape(indices, [b.numel(indices)]))
    axis = axis_of(self, dim)
    common = b.broadcast_shape(self, indices) or (None,) * self.rank

    def spread(x: Tensor, other: Tensor) -> Tensor:
        """As large as the other one, but for the axis; Expand keeps what is larger."""
        sizes = [1 if a == axis else size for a, size in enumerate(b.dims(other))]
        if all(size in (1, own) for size, own in zip(sizes, b.dims(x), strict=True)):
            return x
        dims = [
            sympy.Max(*pair) if size is None else size
            for size, *pair in zip(common, b.dims(x), sizes, strict=True)
        ]
        dims[axis] = x.dim(axis)
        return b.with_shape(b.Expand(x, b.shape(sizes)), dims)

    return gather_elements(b, spread(self, indices), axis, spread(indices, self))


@lowering("aten::embedding")
def embedding(
    b: Builder,
    weight: Tensor,
    indices: Tensor,
    padding_idx: Dim = -1,
    sparse: bool = False,
) -> Tensor:
    # All but the indices steers the gradient only.
    return b.Gather(weight, indices, axis=0)


@lowering("aten::one_hot")
def one_hot(b: Builder, self: Tensor, num_classes: Dim = -1) -> Tensor:
    if is_number(num_classes, -1):
        depth = b.Add(b.ReduceMax(b.reshape(self, [b.numel(self)]), [0], keepdims=1), 1)
    else:
        depth = b.size(num_classes)
    # ONNX Runtime takes no 0-d indices.
    codes = b.OneHot(at_least_1d(b, self), depth, b.const(torch.tensor([0, 1])), axis=-1)
    return b.squeeze(codes, [0]) if self.rank == 0 else codes


# -- masks -----------------------------------------------------------------------------------------


@lowering("aten::masked_fill.Scalar", "aten::masked_fill.Tensor")
def masked_fill(b: Builder, self: Tensor, mask: Tensor, value: Tensor | Scalar) -> Tensor:
    return choose(b, b.cast(mask, torch.bool), b.scalar(value, self.dtype), self)


@lowering("aten::masked_select")
def masked_select(b: Builder, self: Tensor, mask: Tensor) -> Tensor:
    x, condition = alike(b, self, b.cast(mask, torch.bool))
    flat, marks = b.reshape(x, [-1]), b.reshape(condition, [-1])
    return advanced_indexing.take(b, flat, [marks])


@lowering("aten::masked_scatter")
def masked_scatter(b: Builder, self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    x, condition = alike(b, self, b.cast(mask, torch.bool))
    flat, marks = b.reshape(x, [-1]), b.reshape(condition, [-1])
    places = b.transpose(b.NonZero(marks), [1, 0])
    count = b.Shape(places, start=0, end=1)
    values = b.slice(b.reshape(b.cast(source, self.dtype), [-1]), 0, 0, count)
    return _reshape_like(b, b.ScatterND(flat, places, values), x)


def _reshape_like(b: Builder, flat: Tensor, x: Tensor) -> Tensor:
    if x.shape is not None and all(d is not None for d in x.shape):
        return b.reshape(flat, b.dims(x))
    result = b.Reshape(flat, b.Shape(x))
    return b.with_shape(result, [None] * x.rank)


@lowering("aten::nonzero", "aten::argwhere")
def nonzero(b: Builder, self: Tensor) -> Tensor:
    places = b.transpose(_places(b, self), [1, 0])
    # A 0-d tensor has no coordinates: its rows are empty.
    return b.slice(places, 1, 0, 0) if self.rank == 0 else places


@lowering("aten::nonzero_numpy")
@lowering("aten::where", renamed={"condition": "self"})
def nonzero_by_dim(b: Builder, self: Tensor) -> list[Tensor]:
    places = _places(b, self)
    return [b.Gather(places, row, axis=0) for row in range(max(self.rank, 1))]


@lowering("aten::nonzero_static")
def nonzero_static(b: Builder, self: Tensor, *, size: Dim, fill_value: int = -1) -> Tensor:
    found = nonzero(b, self)
    filler = b.full([size, self.rank], fill_value, torch.int64)
    result = b.slice(b.Concat(found, filler, axis=0), 0, 0, size)
    return b.with_shape(result, [size, self.rank])


def _places(b: Builder, x: Tensor) -> Tensor:
    """The places of the elements that are not zero: int64 of [dims, places]."""
    marks = at_least_1d(b, x)
    if marks.dtype not in (torch.bool, torch.float32, torch.int32, torch.int64, torch.uint8):
        marks = b.cast(marks, torch.bool)
    return b.NonZero(marks)
