"""Integers with their scale and zero point beside them: how a captured model is quantized."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.quantization import chosen_scale, dequantized, grid_of, quantized
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor

_OF_CHANNELS = {"scales": "scale", "zero_points": "zero_point"}
"""The parameters for what operators with a scale for each channel have several of."""


@lowering(
    "quantized_decomposed::quantize_per_tensor",
    "quantized_decomposed::quantize_per_tensor.tensor",
    "quantized_decomposed::quantize_per_tensor.tensor2",
)
@lowering("quantized_decomposed::quantize_per_channel", renamed=_OF_CHANNELS)
def quantize(
    b: Builder,
    input: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int,
    quant_min: Tensor | int,
    quant_max: Tensor | int,
    dtype: torch.dtype,
    axis: int | None = None,
) -> Tensor:
    low, high = (_known_integer(b, bound) for bound in (quant_min, quant_max))
    return quantized(b, input, grid_of(b, scale, zero_point, low, high, axis, input.rank), dtype)


def _known_integer(b: Builder, bound: Tensor | int) -> int:
    if isinstance(bound, int):
        return bound
    if bound.const is None:
        raise b.refuse("the bounds of the integers must be known at export time")
    return int(bound.const.item())


@lowering(
    "quantized_decomposed::dequantize_per_tensor",
    "quantized_decomposed::dequantize_per_tensor.tensor",
    "quantized_decomposed::dequantize_per_tensor.tensor2",
)
@lowering("quantized_decomposed::dequantize_per_channel", renamed=_OF_CHANNELS)
def dequantize(
    b: Builder,
    input: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int | None,
    quant_min: Tensor | int,
    quant_max: Tensor | int,
    dtype: torch.dtype,
    axis: int | None = None,
    *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    if zero_point is None:
        zero_point = b.full_like(b.scalar(scale), 0, torch.int64)
    grid = grid_of(b, scale, zero_point, 0, 0, axis, input.rank)
    return dequantized(b, input, grid, out_dtype or torch.float32)


@lowering("quantized_decomposed::quantize_per_token")
@lowering("quantized_decomposed::quantize_per_channel_group")
def quantize_rows(
    b: Builder,
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    group_size: int | None = None,
) -> Tensor:
    x, scale, zero = _rows(b, input, scales, zero_points, group_size)
    rounded = b.Round(b.Add(b.Div(x, scale), zero))
    low, high = b.scalar(quant_min, torch.float32), b.scalar(quant_max, torch.float32)
    q = b.cast(b.Clip(rounded, low, high), dtype)
    return q if group_size is None else b.reshape(q, b.dims(input))


@lowering("quantized_decomposed::dequantize_per_token")
@lowering("quantized_decomposed::dequantize_per_channel_group")
def dequantize_rows(
    b: Builder,
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    group_size: int | None = None,
    output_dtype: torch.dtype = torch.float32,
) -> Tensor:
    q, scale, zero = _rows(b, input, scales, zero_points, group_size)
    real = b.cast(b.Mul(b.Sub(q, zero), scale), output_dtype)
    return real if group_size is None else b.reshape(real, b.dims(input))


def _rows(
    b: Builder, x: Tensor, scales: Tensor, zero_points: Tensor | None, group_size: int | None
) -> list[Tensor]:
    """What is (de)quantized, scales and zero points, which broadcast against it, in float32: with
    `group_size` a row of so many elements for each scale."""
    operands = [x, scales, b.scalar(0) if zero_points is None else zero_points]
    if group_size is not None:
        width = x.static_dim(1)
        if width is None:
            raise b.refuse("the length of the rows must be known at export time")
        lengths = (min(group_size, width), 1, 1)
        operands = [
            b.Reshape(t, [-1, n]) if t.rank else t for t, n in zip(operands, lengths, strict=True)
        ]
    return b.promote(*operands, dtype=torch.float32)


@lowering("quantized_decomposed::choose_qparams.tensor")
def choose_qparams(
    b: Builder, input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    low, high = _range_of(b, input)
    scale, zero = chosen_scale(b, low, high, quant_min, quant_max, eps)
    return b.cast(scale, torch.float64), b.cast(zero, torch.int64)


@lowering("quantized_decomposed::choose_qparams_symmetric.tensor")
def choose_qparams_symmetric(
    b: Builder, input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    low, high = _range_of(b, input)
    reach = b.Max(b.Neg(low), high)
    scale = b.Max(b.Div(reach, (quant_max - quant_min) / 2), eps)
    zero = 128 if dtype == torch.uint8 else 0
    return b.cast(scale, torch.float64), b.const([zero], torch.int64)


def _range_of(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """The least and the greatest value, each of shape [1]."""
    flat = b.Reshape(b.cast(x, torch.float32), [-1])
    return b.ReduceMin(flat, [0], keepdims=1), b.ReduceMax(flat, [0], keepdims=1)


@lowering("quantized_decomposed::choose_qparams_per_token")
def choose_qparams_per_token(
    b: Builder, input: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """One scale for each vector along the last axis, and zero as the zero point."""
    x = b.cast(input, torch.float32)
    reach = b.ReduceMax(b.Abs(x), [-1], keepdims=1)
    scale = b.cast(b.Div(b.Max(reach, 1e-5), 127.0), torch.float64)
    return scale, b.full_like(scale, 0, torch.int64)


@lowering("quantized_decomposed::choose_qparams_per_token_asymmetric")
def choose_qparams_per_token_asymmetric(
    b: Builder, input: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    x = b.cast(input, torch.float32)
    low, high = b.ReduceMin(x, [-1], keepdims=1), b.ReduceMax(x, [-1], keepdims=1)
    eps = torch.finfo(torch.float32).eps
    scale, zero = chosen_scale(b, low, high, -128, 127, eps)
    return b.cast(scale, torch.float64), b.cast(zero, torch.int64)


@lowering("quantized_decomposed::convert_element_type.no_fuse")
def convert_element_type(b: Builder, input: Tensor, dtype: torch.dtype) -> Tensor:
    return b.cast(input, dtype)
