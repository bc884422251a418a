"""Quantization as arithmetic, for opsets that lack it or that have one scale per tensor only."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError, known_rank
from sardonyx.legalize.emitter import Emitter, input_of, rank_of, required_input

_RANGES = {
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT8: (-128, 127),
}


def is_per_tensor(node: ir.Node) -> bool:
    """Whether one scale is all that a QuantizeLinear or DequantizeLinear has."""
    rank = rank_of(required_input(node, 1))
    if rank is None:
        raise InexpressibleError("it is not known whether it has a scale per channel")
    return rank == 0


def _along_its_axis(b: Emitter, value: ir.Value, node: ir.Node) -> ir.Value:
    """A scale or zero point, shaped to broadcast over the tensor it is for."""
    if rank_of(value) == 0:
        return value
    rank = known_rank(required_input(node, 0))
    axis = node.attributes.get_int("axis", 1) % rank
    return b.Reshape(value, b.ints(-1, *[1] * (rank - 1 - axis)))


def quantized(b: Emitter, node: ir.Node) -> ir.Value:
    x, scale, zero_point = required_input(node, 0), required_input(node, 1), input_of(node, 2)
    dtype = ir.DataType.UINT8 if zero_point is None else zero_point.dtype
    if dtype not in _RANGES:
        raise InexpressibleError("it is not quantized to 8 bits")
    low, high = (b.const(float(bound), ir.DataType.FLOAT) for bound in _RANGES[dtype])
    steps = b.Div(b.cast(x, ir.DataType.FLOAT), _along_its_axis(b, scale, node))
    level = b.Round(steps) if b.opset >= 11 else round_half_to_even(b, steps)
    if zero_point is not None:
        shift = b.cast(_along_its_axis(b, zero_point, node), ir.DataType.FLOAT)
        level = b.Add(level, shift)
    return b.Cast(b.Min(b.Max(level, low), high), to=int(dtype))


def dequantized(b: Emitter, node: ir.Node) -> ir.Value:
    x, scale, zero_point = required_input(node, 0), required_input(node, 1), input_of(node, 2)
    level = x
    if zero_point is not None:
        wide = ir.DataType.INT32
        level = b.Sub(b.cast(x, wide), b.cast(_along_its_axis(b, zero_point, node), wide))
    return b.Mul(b.cast(level, scale.dtype), _along_its_axis(b, scale, node))


def round_half_to_even(b: Emitter, x: ir.Value) -> ir.Value:
    """Round-11 of opsets before it. What a floor takes away is exact, so halves are recognized."""
    half, two = b.const_like(0.5, like=x), b.const_like(2.0, like=x)
    floor = b.Floor(x)
    rest = b.Sub(x, floor)
    is_odd = b.Greater(b.Sub(floor, b.Mul(b.Floor(b.Div(floor, two)), two)), half)
    # Of infinities the rest is not a number: it is neither more nor less than a half.
    not_less = b.Not(b.Less(rest, half))
    up = b.Or(b.Greater(rest, half), b.And(not_less, is_odd))
    return b.Add(floor, b.cast(up, x.dtype))
