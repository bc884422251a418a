"""Reductions of the segments that a dim is cut into."""

from __future__ import annotations

import math

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange, axis_of
from sardonyx.lower.ops.scatter import scatter_elements
from sardonyx.lower.ops.sorting import places_among
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor

_REDUCTIONS = {"sum": "add", "mean": "add", "prod": "mul", "max": "max", "min": "min"}
_OF_NOTHING = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


@lowering("aten::segment_reduce")
def segment_reduce(
    b: Builder,
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Scalar | None = None,
) -> Tensor:
    # `unsafe` leaves out a check of the lengths.
    axis = axis_of(data, axis)
    if offsets is None:
        if lengths is None:
            raise b.refuse("neither lengths nor offsets say where the segments are")
        offsets = _offsets_of(b, lengths, axis)
    bounds = b.cast(offsets, torch.int64)
    segments = bounds.dim(axis) - 1
    dims = b.dims(data)
    outer, inner = dims[:axis], dims[axis + 1 :]
    # Slot 0 takes what lies before the first segment, the last slot what lies behind them all.
    positions = b.expand(arange(b, dims[axis]), [*outer, dims[axis]])
    slot = places_among(b, bounds, positions, right=True)
    places = b.expand(b.unsqueeze(slot, list(range(axis + 1, data.rank))), dims)
    start = _OF_NOTHING[reduce] if initial is None else initial
    base = b.full([*outer, segments + 2, *inner], start, data.dtype)
    reduced = scatter_elements(b, base, axis, places, data, _REDUCTIONS[reduce])
    result = b.slice(reduced, axis, 1, -1)
    if reduce == "mean":
        result = _divided(b, result, bounds, axis, initial)
    return b.with_shape(result, [*outer, segments, *inner])


def _offsets_of(b: Builder, lengths: Tensor, axis: int) -> Tensor:
    ends = b.CumSum(b.cast(lengths, torch.int64), b.scalar(axis, torch.int64))
    start = b.full([*b.dims(lengths)[:axis], 1], 0, torch.int64)
    joined = b.Concat(start, ends, axis=axis)
    return b.with_shape(joined, [*b.dims(lengths)[:axis], lengths.dim(axis) + 1])


def _divided(
    b: Builder, total: Tensor, bounds: Tensor, axis: int, initial: Scalar | None
) -> Tensor:
    """The mean of no elements is NaN, or the initial value if there is one."""
    lengths = b.Sub(b.slice(bounds, axis, 1, None), b.slice(bounds, axis, 0, -1))
    lengths = b.unsqueeze(lengths, list(range(axis + 1, total.rank)))
    if initial is not None:
        lengths = b.Max(lengths, 1)
    return b.Div(total, b.cast(lengths, total.dtype))
