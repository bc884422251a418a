"""Real values on a grid of integers: what quantization and its imitation share.

The scale is divided by, as ONNX defines it; PyTorch multiplies by its inverse. Values that lie
on the border between two integers may therefore end one quantization step apart.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.values import Tensor

_LINEAR = (torch.uint8, torch.int8)
"""What QuantizeLinear and DequantizeLinear take at every opset."""


class Grid(NamedTuple):
    """The integers that real values are rounded to, and what they stand for."""

    scale: Tensor
    zero_point: Tensor
    axis: int | None
    """Of the channels; None where one scale is for the whole tensor."""
    low: int
    high: int

    @property
    def carrier(self) -> torch.dtype | None:
        """An integer type of QuantizeLinear that holds the grid."""
        if self.zero_point.is_floating_point:
            return None
        fits = (
            dtype
            for dtype in _LINEAR
            if torch.iinfo(dtype).min <= self.low and self.high <= torch.iinfo(dtype).max
        )
        return next(fits, None)


def grid_of(
    b: Builder,
    scale: Tensor | float,
    zero_point: Tensor | int,
    low: int,
    high: int,
    axis: int | None = None,
    rank: int = 0,
) -> Grid:
    """Numbers and one-element tensors are for the whole tensor, unless `axis` says otherwise."""
    step = b.scalar(scale, torch.float32)
    zero = b.scalar(zero_point, torch.int64 if isinstance(zero_point, int) else None)
    if axis is None:
        step, zero = (b.squeeze(p, list(range(p.rank))) for p in (step, zero))
    return Grid(step, zero, None if axis is None else axis % max(rank, 1), low, high)


def _per_channel(b: Builder, x: Tensor, parameter: Tensor, axis: int | None) -> Tensor:
    """A scale or zero point as it broadcasts against `x`."""
    return parameter if axis is None else b.unsqueeze(parameter, list(range(1, x.rank - axis)))


def _rounded(b: Builder, x: Tensor, grid: Grid) -> Tensor:
    """The nearest point of the unlimited grid, still as a real number."""
    scale = b.cast(_per_channel(b, x, grid.scale, grid.axis), x.dtype)
    zero = b.cast(_per_channel(b, x, grid.zero_point, grid.axis), x.dtype)
    steps = b.Div(x, scale)
    if grid.zero_point.is_floating_point:
        result = b.Round(b.Add(steps, zero))
    else:
        result = b.Add(b.Round(steps), zero)
    return result


def _clipped(b: Builder, x: Tensor, grid: Grid) -> Tensor:
    return b.Clip(x, b.scalar(grid.low, x.dtype), b.scalar(grid.high, x.dtype))


def quantized(b: Builder, x: Tensor, grid: Grid, dtype: torch.dtype) -> Tensor:
    if dtype not in _LINEAR or grid.zero_point.is_floating_point:
        # float32 does not hold the largest int32.
        wide = b.cast(x, torch.float64 if dtype == torch.int32 else torch.float32)
        return b.cast(_clipped(b, _rounded(b, wide, grid), grid), dtype)
    x = b.cast(x, torch.float32)
    result = b.QuantizeLinear(x, grid.scale, b.cast(grid.zero_point, dtype), axis=grid.axis)
    whole = torch.iinfo(dtype).min >= grid.low and torch.iinfo(dtype).max <= grid.high
    return result if whole else _clipped(b, result, grid)


def dequantized(b: Builder, q: Tensor, grid: Grid, dtype: torch.dtype) -> Tensor:
    if q.dtype in _LINEAR and not grid.zero_point.is_floating_point:
        zero = b.cast(grid.zero_point, q.dtype)
        return b.cast(b.DequantizeLinear(q, grid.scale, zero, axis=grid.axis), dtype)
    real = b.cast(q, torch.float64 if q.dtype == torch.int32 else torch.float32)
    zero = b.cast(_per_channel(b, q, grid.zero_point, grid.axis), real.dtype)
    scale = b.cast(_per_channel(b, q, grid.scale, grid.axis), real.dtype)
    return b.cast(b.Mul(b.Sub(real, zero), scale), dtype)


def fake_quantized(b: Builder, x: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
    """The nearest values of the grid, and where `x` is within its range."""
    wide = x if x.dtype == torch.float64 else b.cast(x, torch.float32)
    rounded = _rounded(b, wide, grid)
    low, high = b.scalar(grid.low, wide.dtype), b.scalar(grid.high, wide.dtype)
    within = b.And(b.GreaterOrEqual(rounded, low), b.LessOrEqual(rounded, high))
    carrier = None if wide.dtype == torch.float64 else grid.carrier
    if carrier is not None:
        integers = quantized(b, wide, grid, carrier)
        return dequantized(b, integers, grid, x.dtype), within
    zero = b.cast(_per_channel(b, x, grid.zero_point, grid.axis), wide.dtype)
    scale = b.cast(_per_channel(b, x, grid.scale, grid.axis), wide.dtype)
    result = b.Mul(b.Sub(_clipped(b, rounded, grid), zero), scale)
    return b.cast(result, x.dtype), within


def chosen_scale(
    b: Builder, low: Tensor, high: Tensor, quant_min: int, quant_max: int, eps: float
) -> tuple[Tensor, Tensor]:
    """Scale and zero point (as float32) so that the integers span low..high, and zero is one."""
    low, high = b.Min(low, 0), b.Max(high, 0)
    scale = b.Max(b.Div(b.Sub(high, low), float(quant_max - quant_min)), eps)
    zero = b.Sub(float(quant_min), b.Round(b.Div(low, scale)))
    return scale, b.Clip(zero, float(quant_min), float(quant_max))
