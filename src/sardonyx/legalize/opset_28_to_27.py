"""Opset 28 to 27."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, known_dtype
from sardonyx.legalize.emitter import HALF_DTYPES, Emitter, constant_of, required_input

BOUNDARY = Boundary(27, functions=["SpaceToDepth", "SwiGLU"])


@BOUNDARY.rewrite("Mod")
def mod(b: Emitter, node: ir.Node) -> ir.Value | None:
    dividend, divisor = required_input(node, 0), required_input(node, 1)
    dtype = dividend.dtype
    if node.attributes.get_int("fmod", 0) or dtype is None or not dtype.is_floating_point():
        return None
    # Below 28 only fmod=1 takes floats: move the remainder to the divisor's side of zero.
    remainder = b.Mod(dividend, divisor, fmod=1)
    zero = b.const_like(0.0, like=dividend)
    opposite = b.Xor(b.Less(remainder, zero), b.Less(divisor, zero))
    moves = b.And(opposite, b.Not(b.Equal(remainder, zero)))
    return b.Where(moves, b.Add(remainder, divisor), remainder)


@BOUNDARY.rewrite("Celu")
def celu(b: Emitter, node: ir.Node) -> ir.Value | None:
    x = required_input(node, 0)
    # Half precision is left to the float32 cast; float64 would lose its digits there.
    if x.dtype == ir.DataType.FLOAT or x.dtype in HALF_DTYPES:
        return None
    alpha = b.const_like(node.attributes.get_float("alpha", 1.0), like=x)
    zero = b.const_like(0.0, like=x)
    decay = b.Mul(alpha, b.Sub(b.Exp(b.Div(x, alpha)), b.const_like(1.0, like=x)))
    return b.Add(b.Max(x, zero), b.Min(decay, zero))


@BOUNDARY.rewrite("BitShift")
def bit_shift(b: Emitter, node: ir.Node) -> ir.Value | None:
    x, amount = required_input(node, 0), required_input(node, 1)
    dtype = known_dtype(x)
    bits = dtype.bitwidth
    if not dtype.is_signed():
        return None
    direction = node.attributes["direction"].as_string()
    unsigned = ir.DataType.UINT64 if bits == 64 else ir.DataType.UINT32
    minus_one = b.const(-1, dtype)
    known = constant_of(amount)
    in_range: ir.Value | None = None
    if known is None or known.min(initial=0) < 0 or known.max(initial=0) >= bits:
        zero = b.const(0, dtype)
        in_range = b.And(b.GreaterOrEqual(amount, zero), b.Less(amount, b.const(bits, dtype)))
        amount = b.Where(in_range, amount, zero)

    def shifted(value: ir.Value) -> ir.Value:
        moved = b.BitShift(b.cast(value, unsigned), b.cast(amount, unsigned), direction=direction)
        result = b.cast(moved, dtype)
        return result if in_range is None else b.Where(in_range, result, b.const(0, dtype))

    if direction == "LEFT":
        return shifted(x)
    # An arithmetic right shift of a negative number is the complement of its complement's shift.
    negative = b.Less(x, b.const(0, dtype))
    magnitude = b.Where(negative, b.Sub(minus_one, x), x)
    moved = shifted(magnitude)
    return b.Where(negative, b.Sub(minus_one, moved), moved)
