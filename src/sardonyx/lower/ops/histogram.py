"""Histograms."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("aten::histc")
def histc(b: Builder, self: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    if not self.dtype.is_floating_point:
        raise b.refuse("histc of integers exists on GPUs alone")
    flat = b.reshape(self, [-1])
    if min == max:
        edges = _edges_of_data(b, flat, bins)
    else:
        edges = b.const(torch.linspace(min, max, bins + 1, dtype=self.dtype))
    # A bin holds its left edge, the last one its right edge too.
    left, last = b.slice(edges, 0, 0, bins), b.slice(edges, 0, bins, bins + 1)
    column = b.unsqueeze(flat, [1])
    at_least = _count(b, b.GreaterOrEqual(column, left))
    beyond = _count(b, b.Greater(column, last))
    following = b.Concat(b.slice(at_least, 0, 1, bins), beyond, axis=0)
    return b.cast(b.Sub(at_least, following), self.dtype)


def _edges_of_data(b: Builder, flat: Tensor, bins: int) -> Tensor:
    """From the smallest to the largest element, one apart from it where all are equal."""
    smallest, largest = (b.op(op, flat, [0], keepdims=1) for op in ("ReduceMin", "ReduceMax"))
    widening = b.cast(b.Equal(smallest, largest), flat.dtype)
    start, end = b.Sub(smallest, widening), b.Add(largest, widening)
    step = b.Div(b.Sub(end, start), b.scalar(bins, flat.dtype))
    # As torch.linspace: from the start in the first half, from the end in the second.
    places = torch.arange(bins + 1, dtype=flat.dtype)
    from_start = b.Add(start, b.Mul(step, b.const(places)))
    from_end = b.Sub(end, b.Mul(step, b.const(bins - places)))
    first_half = torch.arange(bins + 1) < (bins + 1) // 2
    result: Tensor = b.Where(b.const(first_half), from_start, from_end)
    return result


def _count(b: Builder, mask: Tensor) -> Tensor:
    result: Tensor = b.ReduceSum(b.cast(mask, torch.int64), [0], keepdims=0)
    return result
