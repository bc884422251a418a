"""Operators that ONNX Runtime computes in float32 only, in terms of ones that it has in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter

Form = Callable[[Emitter, ir.Node], ir.Value]


def _number(b: Emitter, value: float) -> ir.Value:
    return b.const(value, ir.DataType.DOUBLE)


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


def _elu(b: Emitter, x: ir.Value, alpha: float = 1.0) -> ir.Value:
    below = _expm1(b, b.Min(x, _number(b, 0.0)))
    return _where_negative(b, x, b.Mul(below, _number(b, alpha)), x)


def _selu(
    b: Emitter,
    x: ir.Value,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
) -> ir.Value:
    return b.Mul(_elu(b, x, alpha), _number(b, gamma))


def _leaky_relu(b: Emitter, x: ir.Value, alpha: float = 0.01) -> ir.Value:
    return _where_negative(b, x, b.Mul(x, _number(b, alpha)), x)


def _prelu(b: Emitter, x: ir.Value, slope: ir.Value) -> ir.Value:
    return _where_negative(b, x, b.Mul(x, slope), x)


def _thresholded_relu(b: Emitter, x: ir.Value, alpha: float = 1.0) -> ir.Value:
    return b.Where(b.Greater(x, _number(b, alpha)), x, _number(b, 0.0))


def _softplus(b: Emitter, x: ir.Value) -> ir.Value:
    tail = _log1p(b, b.Exp(b.Neg(b.Abs(x))))
    return b.Add(b.Max(x, _number(b, 0.0)), tail)


def _mish(b: Emitter, x: ir.Value) -> ir.Value:
    return b.Mul(x, b.Tanh(_softplus(b, x)))


def _softsign(b: Emitter, x: ir.Value) -> ir.Value:
    return b.Div(x, b.Add(b.Abs(x), _number(b, 1.0)))


def _hard_sigmoid(b: Emitter, x: ir.Value, alpha: float = 0.2, beta: float = 0.5) -> ir.Value:
    line = b.Add(b.Mul(x, _number(b, alpha)), _number(b, beta))
    return b.Min(b.Max(line, _number(b, 0.0)), _number(b, 1.0))


def _hard_swish(b: Emitter, x: ir.Value) -> ir.Value:
    return b.Mul(x, _hard_sigmoid(b, x, alpha=1 / 6))


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


def _form(function: Callable[..., ir.Value]) -> Form:
    """What a function of inputs and attributes gives for those of a node."""

    def form(b: Emitter, node: ir.Node) -> ir.Value:
        attributes = {name: each.as_float() for name, each in node.attributes.items()}
        return function(b, *node.inputs, **attributes)

    return form


FLOAT64_FORMS: Mapping[str, Form] = {
    "Acos": _form(_acos),
    "Acosh": _form(_acosh),
    "Asin": _form(_asin),
    "Asinh": _form(_asinh),
    "Atan": _form(_atan),
    "Atanh": _form(_atanh),
    "Cosh": _form(_cosh),
    "Elu": _form(_elu),
    "HardSigmoid": _form(_hard_sigmoid),
    "HardSwish": _form(_hard_swish),
    "LeakyRelu": _form(_leaky_relu),
    "Mish": _form(_mish),
    "PRelu": _form(_prelu),
    "Selu": _form(_selu),
    "Sinh": _form(_sinh),
    "Softplus": _form(_softplus),
    "Softsign": _form(_softsign),
    "Tan": _form(_tan),
    "ThresholdedRelu": _form(_thresholded_relu),
}
