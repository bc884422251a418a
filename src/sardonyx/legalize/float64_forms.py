"""Operators that ONNX Runtime computes in float32 only, in terms of ones that it has in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter, required_input

Form = Callable[[Emitter, ir.Node], ir.Value]


def _number(b: Emitter, value: float) -> ir.Value:
    return b.const(value, ir.DataType.DOUBLE)


def _float(node: ir.Node, name: str, default: float) -> float:
    return node.attributes.get_float(name, default)


def _where_negative(b: Emitter, x: ir.Value, then: ir.Value, otherwise: ir.Value) -> ir.Value:
    return b.Where(b.Less(x, _number(b, 0.0)), then, otherwise)


def _exponential_unit(b: Emitter, x: ir.Value, alpha: float) -> ir.Value:
    below = b.Sub(b.Exp(b.Min(x, _number(b, 0.0))), _number(b, 1.0))
    return _where_negative(b, x, b.Mul(below, _number(b, alpha)), x)


def _elu(b: Emitter, node: ir.Node) -> ir.Value:
    return _exponential_unit(b, required_input(node, 0), _float(node, "alpha", 1.0))


def _selu(b: Emitter, node: ir.Node) -> ir.Value:
    alpha = _float(node, "alpha", 1.67326319217681884765625)
    gamma = _float(node, "gamma", 1.05070102214813232421875)
    return b.Mul(_exponential_unit(b, required_input(node, 0), alpha), _number(b, gamma))


def _leaky_relu(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    return _where_negative(b, x, b.Mul(x, _number(b, _float(node, "alpha", 0.01))), x)


def _prelu(b: Emitter, node: ir.Node) -> ir.Value:
    x, slope = required_input(node, 0), required_input(node, 1)
    return _where_negative(b, x, b.Mul(x, slope), x)


def _thresholded_relu(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    above = b.Greater(x, _number(b, _float(node, "alpha", 1.0)))
    return b.Where(above, x, _number(b, 0.0))


def _soft_plus(b: Emitter, x: ir.Value) -> ir.Value:
    tail = b.Log(b.Add(b.Exp(b.Neg(b.Abs(x))), _number(b, 1.0)))
    return b.Add(b.Max(x, _number(b, 0.0)), tail)


def _softplus(b: Emitter, node: ir.Node) -> ir.Value:
    return _soft_plus(b, required_input(node, 0))


def _mish(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    return b.Mul(x, b.Tanh(_soft_plus(b, x)))


def _softsign(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    return b.Div(x, b.Add(b.Abs(x), _number(b, 1.0)))


def _ramp(b: Emitter, x: ir.Value, slope: float, middle: float) -> ir.Value:
    line = b.Add(b.Mul(x, _number(b, slope)), _number(b, middle))
    return b.Clip(line, _number(b, 0.0), _number(b, 1.0))


def _hard_sigmoid(b: Emitter, node: ir.Node) -> ir.Value:
    alpha, beta = _float(node, "alpha", 0.2), _float(node, "beta", 0.5)
    return _ramp(b, required_input(node, 0), alpha, beta)


def _hard_swish(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    return b.Mul(x, _ramp(b, x, 1 / 6, 0.5))


def _tan(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    return b.Div(b.Sin(x), b.Cos(x))


def _half_exponentials(b: Emitter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """exp(x) / 2 and exp(-x) / 2; the first is finite wherever sinh and cosh are."""
    log_2 = _number(b, math.log(2))
    return b.Exp(b.Sub(x, log_2)), b.Exp(b.Sub(b.Neg(x), log_2))


def _sinh(b: Emitter, node: ir.Node) -> ir.Value:
    return b.Sub(*_half_exponentials(b, required_input(node, 0)))


def _cosh(b: Emitter, node: ir.Node) -> ir.Value:
    return b.Add(*_half_exponentials(b, required_input(node, 0)))


def _asinh(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    size, one = b.Abs(x), _number(b, 1.0)
    near = b.Log(b.Add(size, b.Sqrt(b.Add(b.Mul(size, size), one))))
    far = b.Add(b.Log(size), _number(b, math.log(2)))  # the square would overflow
    result = b.Where(b.Greater(size, _number(b, 1e100)), far, near)
    return _where_negative(b, x, b.Neg(result), result)


def _acosh(b: Emitter, node: ir.Node) -> ir.Value:
    x, one = required_input(node, 0), _number(b, 1.0)
    root = b.Mul(b.Sqrt(b.Sub(x, one)), b.Sqrt(b.Add(x, one)))
    return b.Log(b.Add(x, root))


def _atanh(b: Emitter, node: ir.Node) -> ir.Value:
    x, one = required_input(node, 0), _number(b, 1.0)
    return b.Mul(b.Log(b.Div(b.Add(one, x), b.Sub(one, x))), _number(b, 0.5))


def _arc_tangent(b: Emitter, x: ir.Value) -> ir.Value:
    """The angle in float32, and what that leaves of it: atan of (x - tan a) / (1 + x tan a)."""
    x = b.Clip(x, _number(b, -1e300), _number(b, 1e300))
    angle = b.cast(b.Atan(b.cast(x, ir.DataType.FLOAT)), ir.DataType.DOUBLE)
    sine, cosine = b.Sin(angle), b.Cos(angle)
    rest = b.Div(b.Sub(b.Mul(x, cosine), sine), b.Add(cosine, b.Mul(x, sine)))
    return b.Add(angle, rest)


def _atan(b: Emitter, node: ir.Node) -> ir.Value:
    return _arc_tangent(b, required_input(node, 0))


def _asin(b: Emitter, node: ir.Node) -> ir.Value:
    x, one = required_input(node, 0), _number(b, 1.0)
    cosine = b.Sqrt(b.Mul(b.Sub(one, x), b.Add(one, x)))
    return _arc_tangent(b, b.Div(x, cosine))


def _acos(b: Emitter, node: ir.Node) -> ir.Value:
    x, one = required_input(node, 0), _number(b, 1.0)
    half = _arc_tangent(b, b.Sqrt(b.Div(b.Sub(one, x), b.Add(one, x))))
    return b.Mul(half, _number(b, 2.0))


FLOAT64_FORMS: Mapping[str, Form] = {
    "Acos": _acos,
    "Acosh": _acosh,
    "Asin": _asin,
    "Asinh": _asinh,
    "Atan": _atan,
    "Atanh": _atanh,
    "Cosh": _cosh,
    "Elu": _elu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "LeakyRelu": _leaky_relu,
    "Mish": _mish,
    "PRelu": _prelu,
    "Selu": _selu,
    "Sinh": _sinh,
    "Softplus": _softplus,
    "Softsign": _softsign,
    "Tan": _tan,
    "ThresholdedRelu": _thresholded_relu,
}
