"""The weights of cubic interpolation."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter


def cubic_weights(b: Emitter, t: ir.Value, a: float) -> list[ir.Value]:
    """Of the four elements around a place `t` after the second of them."""

    def polynomial(x: ir.Value, *coefficients: float) -> ir.Value:
        result = b.const_like(coefficients[0], like=t)
        for coefficient in coefficients[1:]:
            result = b.Add(b.Mul(result, x), b.const_like(coefficient, like=t))
        return result

    def near(x: ir.Value) -> ir.Value:
        return polynomial(x, a + 2, -(a + 3), 0.0, 1.0)

    def far(x: ir.Value) -> ir.Value:
        return polynomial(x, a, -5 * a, 8 * a, -4 * a)

    one, two = b.const_like(1.0, like=t), b.const_like(2.0, like=t)
    return [far(b.Add(t, one)), near(t), near(b.Sub(one, t)), far(b.Sub(two, t))]
