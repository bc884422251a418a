"""Rounding to what integers of a scale can stand for, as quantization-aware training does."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.elementwise import truncate, where
from sardonyx.lower.kernels.quantization import Grid, chosen_scale, fake_quantized, grid_of
from sardonyx.lower.registry import first_result, lowering
from sardonyx.lower.values import Tensor


@lowering("aten::fake_quantize_per_tensor_affine_cachemask")
@lowering("aten::fake_quantize_per_channel_affine_cachemask")
@lowering("aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def fake_quantize_cachemask(
    b: Builder,
    self: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int,
    quant_min: int,
    quant_max: int,
    axis: int | None = None,
    fake_quant_enabled: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    grid = grid_of(b, scale, zero_point, quant_min, quant_max, axis, self.rank)
    return _where_enabled(b, fake_quant_enabled, self, grid)


fake_quantize = lowering(
    "aten::fake_quantize_per_tensor_affine",
    "aten::fake_quantize_per_tensor_affine.tensor_qparams",
    "aten::fake_quantize_per_channel_affine",
)(first_result(fake_quantize_cachemask))


def _where_enabled(
    b: Builder, enabled: Tensor | None, x: Tensor, grid: Grid
) -> tuple[Tensor, Tensor]:
    """The switch, where there is one, is a tensor, as a rule one that the model holds."""
    known = None if enabled is None else enabled.const
    if known is not None and not known.any():
        return x, b.full_like(x, True, torch.bool)
    result, within = fake_quantized(b, x, grid)
    if enabled is None or known is not None:
        return result, within
    switch = b.cast(b.squeeze(enabled, list(range(enabled.rank))), torch.bool)
    return where(b, switch, result, x), b.Or(within, b.Not(switch))


@lowering("quantized_decomposed::fake_quant_per_channel")
def fake_quant_per_channel(
    b: Builder,
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> Tensor:
    zeros = b.cast(zero_points, torch.int32)
    return fake_quantize(b, input, scales, zeros, quant_min, quant_max, axis)


# -- learnable and observed scales -------------------------------------------------------------


@lowering("aten::_fake_quantize_learnable_per_tensor_affine")
@lowering("aten::_fake_quantize_learnable_per_channel_affine")
def fake_quantize_learnable(
    b: Builder,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    axis: int | None = None,
) -> Tensor:
    # The learned zero point is real. Of channels it is rounded; of a whole tensor a half is added,
    # then what is behind the point is cut off.
    real = b.cast(zero_point, torch.float32)
    near = b.Add(real, 0.5) if axis is None else b.Round(real)
    near = b.Clip(near, float(quant_min), float(quant_max))
    zero = b.cast(truncate(b, near) if axis is None else near, torch.int32)
    return fake_quantize(b, self, scale, zero, quant_min, quant_max, axis)


@lowering("aten::_fused_moving_avg_obs_fq_helper_functional")
def fused_moving_avg_obs_fake_quant(
    b: Builder,
    self: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> tuple[Tensor, ...]:
    axis = ch_axis % self.rank if per_row_fake_quant else None
    if observer_on.const is None:
        raise b.refuse("whether the observer is on must be known at export time")
    if observer_on.const.any():
        axes = [a for a in range(self.rank) if a != axis]
        x = b.cast(self, torch.float32)
        running_min = _moved(b, running_min, b.ReduceMin(x, axes, keepdims=0), averaging_const)
        running_max = _moved(b, running_max, b.ReduceMax(x, axes, keepdims=0), averaging_const)
        low, high = b.Min(running_min, 0), b.Max(running_max, 0)
        if symmetric_quant:
            half = (quant_max - quant_min) // 2
            step = b.Max(b.Div(low, float(-half - 1)), b.Div(high, float(half)))
            low, high = b.Mul(step, float(-half - 1)), b.Mul(step, float(half))
        new_scale, new_zero = chosen_scale(b, low, high, quant_min, quant_max, _LEAST_SCALE)
        scale = b.reshape(b.cast(new_scale, scale.dtype), b.dims(scale))
        zero_point = b.reshape(b.cast(new_zero, zero_point.dtype), b.dims(zero_point))
    grid = grid_of(b, scale, zero_point, quant_min, quant_max, axis, self.rank)
    results = _where_enabled(b, fake_quant_on, self, grid)
    return *results, running_min, running_max, scale, zero_point


_LEAST_SCALE = 6.1e-5
"""PyTorch's kernels choose no smaller one."""


def _moved(b: Builder, running: Tensor, now: Tensor, rate: float) -> Tensor:
    """The moving average; an infinite one has seen nothing yet."""
    now = b.reshape(now, b.dims(running))
    average = b.Add(running, b.Mul(b.Sub(now, running), rate))
    return b.Where(b.IsInf(running), now, average)
