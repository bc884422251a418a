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


def _expm1(b: Emitter, x: ir.Value) -> ir.Value:
    """exp(x) - 1 to full precision near zero, as tanh(x / 2) * (exp(x) + 1)."""
    return b.Mul(b.Tanh(b.Mul(x, _number(b, 0.5))), b.Add(b.Exp(x), _number(b, 1.0)))


def _log1p(b: Emitter, x: ir.Value) -> ir.Value:
    """log(1 + x) to full precision near zero: what 1 + x rounds away is added back."""
    one = _number(b, 1.0)
    total = b.Add(x, one)
    lost = b.Div(b.Sub(x, b.Sub(total, one)), total)
    # At -1 and infinity the lost part is 0/0 and inf - inf.
    return b.Add(b.Log(total), b.Where(b.IsNaN(lost), _number(b, 0.0), lost))


def _odd(b: Emitter, x: ir.Value, of_size: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """An odd function, from what it is of |x|."""
    result = of_size(b.Abs(x))
    return _where_negative(b, x, b.Neg(result), result)


def _exponential_unit(b: Emitter, x: ir.Value, alpha: float) -> ir.Value:
    below = _expm1(b, b.Min(x, _number(b, 0.0)))
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


def _softplus(b: Emitter, x: ir.Value) -> ir.Value:
    tail = _log1p(b, b.Exp(b.Neg(b.Abs(x))))
    return b.Add(b.Max(x, _number(b, 0.0)), tail)


def _mish(b: Emitter, x: ir.Value) -> ir.Value:
    return b.Mul(x, b.Tanh(_softplus(b, x)))


def _softsign(b: Emitter, x: ir.Value) -> ir.Value:
    return b.Div(x, b.Add(b.Abs(x), _number(b, 1.0)))


def _ramp(b: Emitter, x: ir.Value, slope: float, middle: float) -> ir.Value:
    line = b.Add(b.Mul(x, _number(b, slope)), _number(b, middle))
    return b.Min(b.Max(line, _number(b, 0.0)), _number(b, 1.0))


def _hard_sigmoid(b: Emitter, node: ir.Node) -> ir.Value:
    alpha, beta = _float(node, "alpha", 0.2), _float(node, "beta", 0.5)
    return _ramp(b, required_input(node, 0), alpha, beta)


def _hard_swish(b: Emitter, x: ir.Value) -> ir.Value:
    return b.Mul(x, _ramp(b, x, 1 / 6, 0.5))


def _tan(b: Emitter, x: ir.Value) -> ir.Value:
    return b.Div(b.Sin(x), b.Cos(x))


def _cosh(b: Emitter, x: ir.Value) -> ir.Value:
    """exp(x) / 2 + exp(-x) / 2, halved in the exponent so as to overflow no sooner than cosh."""
    log_2 = _number(b, math.log(2))
    return b.Add(b.Exp(b.Sub(x, log_2)), b.Exp(b.Sub(b.Neg(x), log_2)))


def _sinh(b: Emitter, x: ir.Value) -> ir.Value:
    return b.Mul(b.Tanh(x), _cosh(b, x))


def _asinh(b: Emitter, x: ir.Value) -> ir.Value:
    def of_size(size: ir.Value) -> ir.Value:
        one, square = _number(b, 1.0), b.Mul(size, size)
        above = b.Div(square, b.Add(b.Sqrt(b.Add(square, one)), one))
        near = _log1p(b, b.Add(size, above))
        far = b.Add(b.Log(size), _number(b, math.log(2)))  # the square would overflow
        return b.Where(b.Greater(size, _number(b, 1e100)), far, near)

    return _odd(b, x, of_size)


def _acosh(b: Emitter, x: ir.Value) -> ir.Value:
    above = b.Sub(x, _number(b, 1.0))
    root = b.Mul(b.Sqrt(above), b.Sqrt(b.Add(above, _number(b, 2.0))))
    return _log1p(b, b.Add(above, root))


def _atanh(b: Emitter, x: ir.Value) -> ir.Value:
    def of_size(size: ir.Value) -> ir.Value:
        ratio = b.Div(b.Mul(size, _number(b, 2.0)), b.Sub(_number(b, 1.0), size))
        return b.Mul(_log1p(b, ratio), _number(b, 0.5))

    return _odd(b, x, of_size)


def _atan(b: Emitter, x: ir.Value) -> ir.Value:
    """The angle in float32, and what that leaves of it: atan of (x - tan a) / (1 + x tan a)."""
    x = b.Min(b.Max(x, _number(b, -1e300)), _number(b, 1e300))
    angle = b.cast(b.Atan(b.cast(x, ir.DataType.FLOAT)), ir.DataType.DOUBLE)
    sine, cosine = b.Sin(angle), b.Cos(angle)
    rest = b.Div(b.Sub(b.Mul(x, cosine), sine), b.Add(cosine, b.Mul(x, sine)))
    return b.Add(angle, rest)


def _asin(b: Emitter, x: ir.Value) -> ir.Value:
    one = _number(b, 1.0)
    cosine = b.Sqrt(b.Mul(b.Sub(one, x), b.Add(one, x)))
    return _atan(b, b.Div(x, cosine))


def _acos(b: Emitter, x: ir.Value) -> ir.Value:
    one = _number(b, 1.0)
    half = _atan(b, b.Sqrt(b.Div(b.Sub(one, x), b.Add(one, x))))
    return b.Mul(half, _number(b, 2.0))


def _of_input(function: Callable[[Emitter, ir.Value], ir.Value]) -> Form:
    """The form of an operator that is a function of its first input alone."""
    return lambda b, node: function(b, required_input(node, 0))


FLOAT64_FORMS: Mapping[str, Form] = {
    "Acos": _of_input(_acos),
    "Acosh": _of_input(_acosh),
    "Asin": _of_input(_asin),
    "Asinh": _of_input(_asinh),
    "Atan": _of_input(_atan),
    "Atanh": _of_input(_atanh),
    "Cosh": _of_input(_cosh),
    "Elu": _elu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _of_input(_hard_swish),
    "LeakyRelu": _leaky_relu,
    "Mish": _of_input(_mish),
    "PRelu": _prelu,
    "Selu": _selu,
    "Sinh": _of_input(_sinh),
    "Softplus": _of_input(_softplus),
    "Softsign": _of_input(_softsign),
    "Tan": _of_input(_tan),
    "ThresholdedRelu": _thresholded_relu,
}
