"""The remainder of floats, exactly."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter, known_dims, rank_of

_WIDE = ir.DataType.DOUBLE
# A quotient below 2 ** 28 times a divisor of 24 bits is exact in the 53 of a double. Ten steps take
# the largest float32 down to the smallest.
_BITS_A_STEP = 28
_STEPS = 10
_LARGEST_FLOAT32 = 3.4028234663852886e38


def float_remainder(b: Emitter, x: ir.Value, y: ir.Value, dtype: ir.DataType) -> ir.Value:
    """fmod of numbers of at most 32 bits: long division by ever smaller multiples of `y`."""
    wide_x, wide_y = b.cast(x, _WIDE), b.Abs(b.cast(y, _WIDE))
    zero = b.const(0.0, _WIDE)
    # As large as the result, where the divisor is the larger of the two.
    dividend = b.Add(b.Abs(wide_x), b.Mul(zero, b.Min(wide_y, b.const(1.0, _WIDE))))
    dims = known_dims(dividend) if rank_of(dividend) is not None else None
    step, going = (
        b.graph_input("step", ir.DataType.INT64, []),
        b.graph_input("going", ir.DataType.BOOL, []),
    )
    rest = b.graph_input("rest", _WIDE, dims or [])
    multiple = b.graph_input("multiple", _WIDE, [])
    if dims is None:
        rest.shape = None

    def divide(inner: Emitter) -> list[ir.Value]:
        divisor = inner.Mul(wide_y, multiple)
        quotient = inner.Floor(inner.Div(rest, divisor))
        left = inner.Sub(rest, inner.Mul(quotient, divisor))
        # The quotient was rounded, and may be one too large or too small.
        left = inner.Where(inner.Less(left, zero), inner.Add(left, divisor), left)
        left = inner.Where(inner.Less(left, divisor), left, inner.Sub(left, divisor))
        smaller = inner.Mul(multiple, inner.const(2.0**-_BITS_A_STEP, _WIDE))
        return [inner.Identity(going), left, smaller]

    body = b.subgraph([step, going, rest, multiple], divide, "long_division")
    first = b.const(2.0 ** (_BITS_A_STEP * (_STEPS - 1)), _WIDE)
    steps = b.const(_STEPS, ir.DataType.INT64)
    left = b.node("Loop", [steps, None, dividend, first], {"body": body}, outputs=2)[0]
    # What is finite is its own remainder by infinity.
    by_infinity = b.Greater(wide_y, b.const(_LARGEST_FLOAT32, _WIDE))
    size = b.Abs(wide_x)
    left = b.Where(by_infinity, b.Add(size, b.Sub(wide_x, wide_x)), left)
    return b.cast(b.Where(b.Less(wide_x, zero), b.Neg(left), left), dtype)
