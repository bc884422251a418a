"""Reductions: sums, extremes, tests, moments and norms over dims."""

from __future__ import annotations

import math
from functools import reduce

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor
from sardonyx.lower.kernels.jacobi import singular_values
from sardonyx.lower.kernels.reductions import (
    accumulate,
    accumulation_dtype,
    may_be_empty,
    reduce_dims,
    reduced_count,
    vector_norm,
)
from sardonyx.lower.registry import first_result, lowering
from sardonyx.lower.values import Ints, Tensor

# -- sums and products -----------------------------------------------------------------------------


@lowering("aten::sum", "aten::sum.dim_IntList")
@lowering("aten::nansum", skips_nan=True)
@lowering("aten::prod", "aten::prod.dim_int", op="ReduceProd")
def total(
    b: Builder,
    self: Tensor,
    dim: Ints | int | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    op: str = "ReduceSum",
    skips_nan: bool = False,
) -> Tensor:
    x = self
    if skips_nan and self.is_floating_point:
        x = b.Where(b.IsNaN(self), b.scalar(0, self.dtype), self)
    x = b.cast(x, dtype or type_promotion.sum_dtype(x.dtype))
    return accumulate(b, op, x, dim, keepdim)


@lowering("aten::mean", "aten::mean.dim")
def mean(
    b: Builder,
    self: Tensor,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    x = b.cast(self, dtype)
    if not may_be_empty(x, dim):
        return accumulate(b, "ReduceMean", x, dim, keepdim)
    # The mean of nothing is NaN in ATen, 0 in ONNX Runtime.
    wide = b.cast(x, accumulation_dtype(x.dtype))
    total = reduce_dims(b, "ReduceSum", wide, dim, keepdim)
    return b.cast(b.Div(total, b.scalar(reduced_count(x, dim), wide.dtype)), x.dtype)


@lowering("aten::logsumexp", "aten::special_logsumexp")
def logsumexp(b: Builder, self: Tensor, dim: Ints | int, keepdim: bool = False) -> Tensor:
    x = b.cast(self, type_promotion.float_dtype(self))
    return accumulate(b, "ReduceLogSumExp", x, dim, keepdim)


# -- any and all -----------------------------------------------------------------------------------


@lowering("aten::any", "aten::any.dim", "aten::any.dims", for_all=False)
@lowering("aten::all", "aten::all.dim", "aten::all.dims", for_all=True)
def any_or_all(
    b: Builder, self: Tensor, dim: Ints | int | None = None, keepdim: bool = False, *, for_all: bool
) -> Tensor:
    # ATen answers uint8 for uint8, bool for everything else.
    answer = torch.uint8 if self.dtype == torch.uint8 else torch.bool
    true = b.cast(self, torch.bool)
    if dim == []:  # unlike in other reductions, no dims at all
        return b.cast(true, answer)
    if not may_be_empty(self, dim):
        op = "ReduceMin" if for_all else "ReduceMax"
        return b.cast(reduce_dims(b, op, true, dim, keepdim), answer)
    counted = b.cast(b.Not(true) if for_all else true, torch.int64)
    count = reduce_dims(b, "ReduceSum", counted, dim, keepdim)
    return b.cast(b.Equal(count, 0) if for_all else b.Greater(count, 0), answer)


# -- extremes --------------------------------------------------------------------------------------


@lowering("aten::amax", "aten::max", op="ReduceMax")
@lowering("aten::amin", "aten::min", op="ReduceMin")
def extreme(
    b: Builder, self: Tensor, dim: Ints | int | None = None, keepdim: bool = False, *, op: str
) -> Tensor:
    wide = b.cast(self, torch.int32) if self.dtype == torch.int16 else self
    return b.cast(reduce_dims(b, op, wide, dim, keepdim), self.dtype)


@lowering("aten::max.dim", op="Max")
@lowering("aten::min.dim", op="Min")
def extreme_of_dim(
    b: Builder, self: Tensor, dim: int, keepdim: bool = False, *, op: str
) -> tuple[Tensor, Tensor]:
    values = extreme(b, self, dim, keepdim, op=f"Reduce{op}")
    return values, index_of_extreme(b, self, dim, keepdim, op=f"Arg{op}")


@lowering("aten::argmax", op="ArgMax")
@lowering("aten::argmin", op="ArgMin")
def index_of_extreme(
    b: Builder, self: Tensor, dim: int | None = None, keepdim: bool = False, *, op: str
) -> Tensor:
    """The first index of the extreme along `dim`."""
    if self.rank == 0:
        return b.scalar(0, torch.int64)
    if dim is None:
        index = index_of_extreme(b, b.reshape(self, [-1]), 0, op=op)
        return b.reshape(index, [1] * self.rank) if keepdim else index
    wide = b.cast(self, torch.uint8) if self.dtype == torch.bool else self
    return b.op(op, wide, axis=dim % self.rank, keepdims=int(keepdim))


# -- moments ---------------------------------------------------------------------------------------


@lowering("aten::var_mean", "aten::var_mean.dim", "aten::var_mean.correction")
@lowering("aten::std_mean", "aten::std_mean.dim", "aten::std_mean.correction", root=True)
def spread_and_mean(
    b: Builder,
    self: Tensor,
    dim: Ints | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    root: bool = False,
) -> tuple[Tensor, Tensor]:
    variance, average = _moments(b, self, dim, unbiased, keepdim, correction)
    spread = b.Sqrt(variance) if root else variance
    return b.cast(spread, self.dtype), b.cast(average, self.dtype)


_spread = first_result(spread_and_mean)
lowering("aten::var", "aten::var.dim", "aten::var.correction")(_spread)
lowering("aten::std", "aten::std.dim", "aten::std.correction", root=True)(_spread)


def _moments(
    b: Builder,
    x: Tensor,
    dim: Ints | None,
    unbiased: bool,
    keepdim: bool,
    correction: float | None,
) -> tuple[Tensor, Tensor]:
    """Variance and mean, in the dtype they are accumulated in."""
    if correction is None:
        correction = 1.0 if unbiased else 0.0
    wide = b.cast(x, accumulation_dtype(x.dtype))
    kept = reduce_dims(b, "ReduceMean", wide, dim, keepdim=True)
    average = mean(b, wide, dim, keepdim)
    apart = b.Sub(wide, kept)
    parts = [apart.real, apart.imag] if isinstance(apart, ComplexTensor) else [apart]
    square = reduce(b.Add, (b.Pow(part, 2) for part in parts))
    count = reduced_count(x, dim)
    if correction == 0 and not may_be_empty(x, dim):
        # The form in which runtimes recognize a layer norm written out.
        return reduce_dims(b, "ReduceMean", square, dim, keepdim), average
    total = reduce_dims(b, "ReduceSum", square, dim, keepdim)
    if isinstance(count, int):
        freedom = b.scalar(max(count - correction, 0.0), wide.dtype)
    else:
        freedom = b.Max(b.Sub(b.scalar(count, wide.dtype), correction), 0)
    return b.Div(total, freedom), average


# -- norms -----------------------------------------------------------------------------------------


@lowering("aten::norm.Scalar")
@lowering(*(f"aten::norm.ScalarOpt_{given}" for given in ("dim", "dtype", "dim_dtype")))
@lowering("aten::linalg_vector_norm", renamed={"ord": "p"})
def norm(
    b: Builder,
    self: Tensor,
    p: float | None = 2.0,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    return vector_norm(b, b.cast(self, dtype), 2.0 if p is None else p, dim, keepdim)


@lowering("aten::linalg_matrix_norm", "aten::linalg_matrix_norm.str_ord")
def linalg_matrix_norm(
    b: Builder,
    self: Tensor,
    ord: float | str = "fro",
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    x = b.cast(self, dtype)
    rows, columns = (axis % x.rank for axis in dim or [-2, -1])
    if ord == "fro":
        return vector_norm(b, x, 2.0, [rows, columns], keepdim)
    if isinstance(ord, str) or abs(ord) not in (1, math.inf):
        return _spectral_norm(b, x, ord, rows, columns, keepdim)
    summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = vector_norm(b, x, 1.0, summed, keepdim=True)
    if ord > 0:
        norm = _largest_or_zero(b, sums, compared, keepdim=True)
    else:
        norm = extreme(b, sums, compared, keepdim=True, op="ReduceMin")
    return norm if keepdim else b.squeeze(norm, [rows, columns])


def _largest_or_zero(b: Builder, sizes: Tensor, dim: int, keepdim: bool) -> Tensor:
    """The largest of what is not negative, 0 where there is none."""
    largest = extreme(b, sizes, dim, keepdim, op="ReduceMax")
    return b.Max(largest, 0) if may_be_empty(sizes, dim) else largest


def _spectral_norm(
    b: Builder, x: Tensor, ord: float | str, rows: int, columns: int, keepdim: bool
) -> Tensor:
    """The sum, the largest or the smallest of the singular values."""
    rest = [axis for axis in range(x.rank) if axis not in (rows, columns)]
    values = singular_values(b, b.transpose(x, [*rest, rows, columns]))
    if ord == 2:
        norm = _largest_or_zero(b, values, -1, keepdim=False)
    else:
        norm = reduce_dims(b, "ReduceSum" if ord == "nuc" else "ReduceMin", values, -1)
    return b.unsqueeze(norm, [rows, columns]) if keepdim else norm


@lowering("aten::linalg_norm", "aten::linalg_norm.ord_str")
def linalg_norm(
    b: Builder,
    self: Tensor,
    ord: float | str | None = None,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    is_of_matrix = (len(dim) if dim is not None else self.rank) == 2
    if isinstance(ord, str) or (ord is not None and is_of_matrix):
        return linalg_matrix_norm(b, self, ord, dim, keepdim, dtype=dtype)
    return norm(b, self, ord, dim, keepdim, dtype=dtype)
