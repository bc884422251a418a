"""Order: sort, topk, median, unique, and search in what is sorted."""

from __future__ import annotations

import sympy
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import at_least_1d, axis_of
from sardonyx.lower.ops.indexing import gather_elements
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Scalar, Tensor


def top(
    b: Builder, x: Tensor, count: Dim | Tensor, axis: int, *, largest: bool
) -> tuple[Tensor, Tensor]:
    """The first `count` along `axis` in order, and their indices; equal ones by index."""
    sortable = torch.uint8 if x.dtype == torch.bool else x.dtype
    wide = b.cast(at_least_1d(b, x), sortable)
    values, indices = b.TopK(wide, b.size(count), axis=axis, largest=int(largest), outputs=2)
    dims = list(wide.shape or ())
    dims[axis] = None if isinstance(count, Tensor) else count
    values, indices = b.with_shape(values, dims), b.with_shape(indices, dims)
    if x.rank == 0:
        values, indices = b.reshape(values, []), b.reshape(indices, [])
    return b.cast(values, x.dtype), indices


def _size_along(x: Tensor, axis: int) -> Dim:
    return x.dim(axis) if x.rank else 1


@lowering("aten::sort", "aten::sort.stable")
def sort(
    b: Builder, self: Tensor, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    # Stable whether asked or not.
    axis = axis_of(self, dim)
    return top(b, self, _size_along(self, axis), axis, largest=descending)


@lowering("aten::topk")
def topk(
    b: Builder, self: Tensor, k: Dim, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    # Unsorted means in any order, so the sorted one serves.
    return top(b, self, k, axis_of(self, dim), largest=largest)


@lowering("aten::kthvalue")
def kthvalue(
    b: Builder, self: Tensor, k: Dim, dim: int = -1, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return _last_of_smallest(b, self, k, axis_of(self, dim), keepdim)


def _last_of_smallest(
    b: Builder, x: Tensor, count: Dim | Tensor, axis: int, keepdim: bool
) -> tuple[Tensor, Tensor]:
    values, indices = top(b, x, count, axis, largest=False)
    if x.rank == 0:
        return values, indices
    return _last(b, values, axis, keepdim), _last(b, indices, axis, keepdim)


def _last(b: Builder, x: Tensor, axis: int, keepdim: bool) -> Tensor:
    return b.Gather(x, b.const(torch.tensor([-1] if keepdim else -1)), axis=axis)


# -- middle and most frequent ----------------------------------------------------------------------


@lowering("aten::median.dim")
def median_dim(b: Builder, self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    axis = axis_of(self, dim)
    size = _size_along(self, axis)
    # The lower of two middle elements.
    half: Dim | Tensor = (
        (size + 1) // 2 if isinstance(size, int) else b.Div(b.Add(b.size(size), 1), 2)
    )
    values, indices = _last_of_smallest(b, self, half, axis, keepdim)
    if not self.is_floating_point:
        return values, indices
    # One NaN makes the median NaN; its index is that of the first.
    missing = b.cast(b.IsNaN(at_least_1d(b, self)), torch.int32)
    keepdims = int(keepdim or self.rank == 0)
    first = b.ArgMax(missing, axis=axis, keepdims=keepdims)
    has_missing = b.cast(b.ReduceMax(missing, [axis], keepdims=keepdims), torch.bool)
    if self.rank == 0:
        first, has_missing = b.reshape(first, []), b.reshape(has_missing, [])
    nan = b.scalar(float("nan"), self.dtype)
    return b.Where(has_missing, nan, values), b.Where(has_missing, first, indices)


@lowering("aten::median")
def median(b: Builder, self: Tensor) -> Tensor:
    return median_dim(b, _elements(b, self), 0)[0]


def _elements(b: Builder, x: Tensor) -> Tensor:
    """All elements of a tensor in one row; where there are none, what PyTorch gives then."""
    count = b.numel(x)
    elements = b.reshape(x, [count])
    if isinstance(count, int):
        return elements
    of_none = float("nan") if x.is_floating_point else torch.iinfo(x.dtype).min
    one = b.reshape(b.scalar(of_none, x.dtype), [1])
    missing = b.Sub(1, b.Min(b.size(count), 1))
    joined = b.Concat(elements, b.Slice(one, [0], missing, [0]), axis=0)
    return b.with_shape(joined, [sympy.Max(count, 1)])


@lowering("aten::nanmedian.dim")
def nanmedian_dim(
    b: Builder, self: Tensor, dim: int, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    if not self.is_floating_point:
        return median_dim(b, self, dim, keepdim)
    axis = axis_of(self, dim)
    x = at_least_1d(b, self)
    missing = b.IsNaN(x)
    present = b.ReduceSum(b.cast(b.Not(missing), torch.int64), [axis], keepdims=1)
    infinite = b.Where(missing, b.scalar(float("inf"), self.dtype), x)
    _, order = top(b, infinite, x.dim(axis), axis, largest=False)
    middle = b.Max(b.Div(b.Sub(present, 1), 2), 0)
    indices = gather_elements(b, order, axis, middle)
    values = gather_elements(b, x, axis, indices)
    if self.rank == 0:
        return b.reshape(values, []), b.reshape(indices, [])
    if keepdim:
        return values, indices
    return b.squeeze(values, [axis]), b.squeeze(indices, [axis])


@lowering("aten::nanmedian")
def nanmedian(b: Builder, self: Tensor) -> Tensor:
    return nanmedian_dim(b, _elements(b, self), 0)[0]


@lowering("aten::mode")
def mode(b: Builder, self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if self.rank == 0:
        return self, b.scalar(0)
    axis = axis_of(self, dim)
    ordered, order = top(b, self, self.dim(axis), axis, largest=False)
    one, other = b.unsqueeze(ordered, [axis + 1]), b.unsqueeze(ordered, [axis])
    counts = b.ReduceSum(b.cast(b.Equal(one, other), torch.int64), [axis + 1], keepdims=0)
    # The smallest of the most frequent, and of those that equal it the last.
    first = b.ArgMax(counts, axis=axis, keepdims=1)
    place = b.Sub(b.Add(first, gather_elements(b, counts, axis, first)), 1)
    values, indices = (gather_elements(b, t, axis, place) for t in (ordered, order))
    if keepdim:
        return values, indices
    return b.squeeze(values, [axis]), b.squeeze(indices, [axis])


# -- unique ----------------------------------------------------------------------------------------


@lowering("aten::_unique2")
def unique2(
    b: Builder,
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    line = b.reshape(self, [b.numel(self)])
    values, inverse, counts = _unique(b, line, None)
    shaped = b.reshape(inverse, b.dims(self))
    return _asked(b, values, shaped, return_inverse, counts, return_counts)


@lowering("aten::_unique")
def unique(
    b: Builder, self: Tensor, sorted: bool = True, return_inverse: bool = False
) -> tuple[Tensor, Tensor]:
    return unique2(b, self, sorted, return_inverse)[:2]


@lowering("aten::unique_dim")
def unique_dim(
    b: Builder,
    self: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    # ATen returns the inverse even where return_inverse is False.
    return _unique(b, self, axis_of(self, dim))


def _unique(b: Builder, x: Tensor, axis: int | None) -> tuple[Tensor, Tensor, Tensor]:
    values, _, inverse, counts = b.Unique(x, axis=axis, sorted=1, outputs=4)
    return values, inverse, counts


def _asked(
    b: Builder,
    values: Tensor,
    inverse: Tensor,
    return_inverse: bool,
    counts: Tensor,
    return_counts: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """An empty tensor, as in ATen, for each result that was not requested."""
    nothing = b.const(torch.zeros(0, dtype=torch.int64))
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


@lowering("aten::unique_consecutive")
def unique_consecutive(
    b: Builder,
    self: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    x = b.reshape(self, [b.numel(self)]) if dim is None else self
    values, inverse, counts = _runs(b, x, axis_of(x, dim or 0))
    if dim is None:
        inverse = b.reshape(inverse, b.dims(self))
    return _asked(b, values, inverse, return_inverse, counts, return_counts)


@lowering("aten::unique_dim_consecutive")
def unique_dim_consecutive(
    b: Builder, self: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    return _runs(b, self, axis_of(self, dim))


def _runs(b: Builder, x: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """The first slice of each run of equal ones, the run each slice is in, and their lengths."""
    size = b.size(x.dim(axis))
    others = [a for a in range(x.rank) if a != axis]
    changes = b.Not(b.Equal(b.slice(x, axis, 1, None), b.slice(x, axis, 0, -1)))
    if others:
        changes = b.cast(b.ReduceMax(b.cast(changes, torch.int32), others, keepdims=0), torch.bool)
    # The first slice starts a run, if there is one.
    first = b.Expand(b.scalar(True), b.Min(size, b.size(1)))
    starts = b.Concat(first, changes, axis=0)
    places = b.reshape(b.NonZero(starts), [-1])
    values = b.Gather(x, places, axis=axis)
    inverse = b.Sub(b.CumSum(b.cast(starts, torch.int64), b.scalar(0)), 1)
    counts = b.Sub(b.Concat(b.slice(places, 0, 1, None), size, axis=0), places)
    return values, inverse, counts


# -- search ----------------------------------------------------------------------------------------


@lowering("aten::searchsorted.Tensor", "aten::searchsorted.Scalar")
def searchsorted(
    b: Builder,
    sorted_sequence: Tensor,
    self: Tensor | Scalar,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    if sorter is not None:
        sorted_sequence = gather_elements(b, sorted_sequence, -1, sorter)
    return places_among(b, sorted_sequence, self, right or side == "right", out_int32)


@lowering("aten::bucketize.Tensor", "aten::bucketize.Scalar")
def bucketize(
    b: Builder,
    self: Tensor | Scalar,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
) -> Tensor:
    return places_among(b, boundaries, self, right, out_int32)


def places_among(
    b: Builder, ordered: Tensor, wanted: Tensor | Scalar, right: bool, out_int32: bool = False
) -> Tensor:
    """How many of `ordered` lie before each of `wanted`: compared with all, which is exact."""
    line, sought = b.promote(ordered, wanted)
    if line.dtype == torch.bool:
        line, sought = b.cast(line, torch.uint8), b.cast(sought, torch.uint8)
    if line.rank > 1:
        line = b.unsqueeze(line, [line.rank - 1])
    column = b.unsqueeze(sought, [sought.rank])
    # Not greater, rather than less: NaN comes after everything.
    behind = b.Greater(line, column) if right else b.GreaterOrEqual(line, column)
    before = b.cast(b.Not(behind), torch.int64)
    count = b.ReduceSum(before, [-1], keepdims=0)
    return b.cast(count, torch.int32 if out_int32 else torch.int64)
