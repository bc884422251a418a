"""Quantiles: between which two of the ordered elements, and how far."""

from __future__ import annotations

import math

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import at_least_1d, axis_of
from sardonyx.lower.ops.arithmetic import lerp
from sardonyx.lower.ops.indexing import gather_elements
from sardonyx.lower.ops.sorting import top
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Tensor

_ROUNDED_BY = {"lower": "Floor", "higher": "Ceil", "nearest": "Round"}


@lowering("aten::quantile", "aten::quantile.scalar")
@lowering("aten::nanquantile", "aten::nanquantile.scalar", skips_nan=True)
def quantile(
    b: Builder,
    self: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    skips_nan: bool = False,
) -> Tensor:
    rows = _rows(b, self, dim)
    missing = b.IsNaN(rows)
    ordered = _ascending(b, rows, missing)
    fractions = b.scalar(q, self.dtype)
    if skips_nan:
        present = b.ReduceSum(b.cast(b.Not(missing), self.dtype), [-1], keepdims=1)
        last = b.Max(b.Sub(present, 1), 0)
        ranks = b.Mul(at_least_1d(b, fractions), last)
        is_missing = b.Equal(present, 0)
    else:
        last = b.Sub(b.scalar(rows.dim(-1), self.dtype), 1)
        each = at_least_1d(b, b.Mul(fractions, last))
        ranks = b.expand(each, [*b.dims(rows)[:-1], -1])
        # One NaN makes every quantile of its row NaN.
        found = b.ReduceMax(b.cast(missing, torch.int32), [-1], keepdims=1)
        is_missing = b.cast(found, torch.bool)
    values = _at(b, ordered, ranks, interpolation)
    values = b.Where(is_missing, b.scalar(math.nan, self.dtype), values)
    return _placed(b, values, self, dim, keepdim, fractions.rank)


def _rows(b: Builder, x: Tensor, dim: int | None) -> Tensor:
    """The elements that a quantile is taken of along the last dim."""
    if dim is None:
        return b.reshape(x, [b.numel(x)])
    axis = axis_of(x, dim)
    line = at_least_1d(b, x)
    return b.transpose(line, [*(a for a in range(line.rank) if a != axis), axis])


def _ascending(b: Builder, rows: Tensor, missing: Tensor) -> Tensor:
    """In order along the last dim, infinity in the place of NaN: behind all others."""
    numbers = b.Where(missing, b.scalar(math.inf, rows.dtype), rows)
    return top(b, numbers, rows.dim(-1), rows.rank - 1, largest=False)[0]


def _at(b: Builder, ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """The elements at `ranks` along the last dim, or what lies between two of them."""
    if interpolation in _ROUNDED_BY:
        whole = b.op(_ROUNDED_BY[interpolation], ranks)
        return gather_elements(b, ordered, -1, b.cast(whole, torch.int64))
    floor = b.Floor(ranks)
    below = gather_elements(b, ordered, -1, b.cast(floor, torch.int64))
    above = gather_elements(b, ordered, -1, b.cast(b.Ceil(ranks), torch.int64))
    return lerp(b, below, above, 0.5 if interpolation == "midpoint" else b.Sub(ranks, floor))


def _placed(
    b: Builder, values: Tensor, x: Tensor, dim: int | None, keepdim: bool, rank_of_q: int
) -> Tensor:
    """Results of several fractions lie along a new first dim."""
    fractions: list[Dim] = [values.dim(-1)] if rank_of_q else []
    last = values.rank - 1
    placed = b.transpose(values, [last, *range(last)]) if rank_of_q else b.squeeze(values, [last])
    if x.rank == 0:
        return b.reshape(placed, fractions)
    if not keepdim:
        return placed
    if dim is None:
        return b.reshape(placed, [*fractions, *[1] * x.rank])
    return b.unsqueeze(placed, [len(fractions) + axis_of(x, dim)])
