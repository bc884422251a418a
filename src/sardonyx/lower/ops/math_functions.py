"""Functions of one number: exponentials, trigonometry, rounding, and tests for NaN and infinity."""

from __future__ import annotations

import math
from functools import partial

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor
from sardonyx.lower.kernels import elementwise
from sardonyx.lower.kernels.elementwise import Unary
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor


def _node(op: str, **attributes: int) -> Unary:
    def write(b: Builder, x: Tensor) -> Tensor:
        return b.op(op, x, outputs=None, **attributes)

    return write


# -- of floats; integers and bools are promoted -------------------------------------------------


def _logarithm(base: float, b: Builder, x: Tensor) -> Tensor:
    """In float64 inside: a float32 quotient of logarithms is off for exact powers of the base."""
    wide = x if x.is_complex else b.cast(x, torch.float64)
    return b.cast(b.Div(b.Log(wide), math.log(base)), x.dtype)


def _scaled(factor: float, b: Builder, x: Tensor) -> Tensor:
    return elementwise.with_number(b, b.Mul, x, factor, x.dtype)


def _exp2(b: Builder, x: Tensor) -> Tensor:
    return b.Pow(b.scalar(2.0, x.dtype), x)


def _rsqrt(b: Builder, x: Tensor) -> Tensor:
    return b.Reciprocal(b.Sqrt(x))


def _rounded_once(function: Unary) -> Unary:
    """A function of several nodes, of which halves see the last alone."""

    def write(b: Builder, x: Tensor) -> Tensor:
        return elementwise.in_floats(b, function, x)

    return write


def _entropy(b: Builder, x: Tensor) -> Tensor:
    inside = b.Neg(b.Mul(x, b.Log(x)))
    outside = b.Where(b.Less(x, 0), -math.inf, inside)
    return b.Where(b.Equal(x, 0), 0, outside)


_OF_FLOATS: dict[str, Unary] = {
    "exp": _node("Exp"),
    "exp2 special_exp2": _exp2,
    "expm1 special_expm1": _rounded_once(elementwise.expm1),
    "log": _node("Log"),
    "log2": partial(_logarithm, 2),
    "log10": partial(_logarithm, 10),
    "log1p special_log1p": _rounded_once(elementwise.log1p),
    "sqrt": _node("Sqrt"),
    "rsqrt": _rounded_once(_rsqrt),
    "sin": _node("Sin"),
    "cos": _node("Cos"),
    "tan": _node("Tan"),
    "asin arcsin": _node("Asin"),
    "acos arccos": _node("Acos"),
    "atan arctan": _node("Atan"),
    "sinh": _node("Sinh"),
    "cosh": _node("Cosh"),
    "tanh": _node("Tanh"),
    "asinh arcsinh": _node("Asinh"),
    "acosh arccosh": _node("Acosh"),
    "atanh arctanh": _node("Atanh"),
    "erf special_erf": _node("Erf"),
    "sigmoid special_expit": _node("Sigmoid"),
    "deg2rad": partial(_scaled, math.pi / 180),
    "rad2deg": partial(_scaled, 180 / math.pi),
    "special_entr": _rounded_once(_entropy),
}


def _of_floats(b: Builder, self: Tensor, function: Unary) -> Tensor:
    return function(b, b.cast(self, type_promotion.float_dtype(self)))


for _names, _function in _OF_FLOATS.items():
    lowering(*(f"aten::{name}" for name in _names.split()), function=_function)(_of_floats)


@lowering("aten::logit", "aten::special_logit")
def logit(b: Builder, self: Tensor, eps: float | None = None) -> Tensor:
    x = b.cast(self, type_promotion.float_dtype(self))
    if eps is not None:
        x = b.Clip(x, b.scalar(eps, x.dtype), b.scalar(1 - eps, x.dtype))
    return b.Log(b.Div(x, b.Sub(1, x)))


@lowering("aten::angle")
def angle(b: Builder, self: Tensor) -> Tensor:
    if isinstance(self, ComplexTensor):
        return atan2(b, self.imag, self.real)
    x = b.cast(self, type_promotion.float_dtype(self))
    half_turn = b.Where(b.Less(x, 0), b.scalar(math.pi, x.dtype), b.scalar(0, x.dtype))
    return b.Where(b.IsNaN(x), x, half_turn)


# -- rounding; integers stay as they are ---------------------------------------------------------


def _frac(b: Builder, x: Tensor) -> Tensor:
    return b.Sub(x, elementwise.truncate(b, x))


@lowering("aten::floor", function=_node("Floor"))
@lowering("aten::ceil", function=_node("Ceil"))
@lowering("aten::round", function=_node("Round"))
@lowering("aten::trunc", "aten::fix", function=elementwise.truncate)
@lowering("aten::frac", function=_frac)
def rounding(b: Builder, self: Tensor, function: Unary) -> Tensor:
    return function(b, self) if self.is_floating_point else self


# -- NaN and infinity ----------------------------------------------------------------------------


def _isfinite(b: Builder, x: Tensor) -> Tensor:
    return b.Not(b.Or(b.IsNaN(x), b.IsInf(x)))


@lowering("aten::isnan", function=_node("IsNaN"))
@lowering("aten::isinf", function=_node("IsInf"))
@lowering("aten::isposinf", function=_node("IsInf", detect_negative=0))
@lowering("aten::isneginf", function=_node("IsInf", detect_positive=0))
@lowering("aten::isfinite", function=_isfinite, for_integers=True)
def test(b: Builder, self: Tensor, function: Unary, for_integers: bool = False) -> Tensor:
    """`for_integers` is the answer for every integer."""
    if self.is_floating_point or self.is_complex:
        return function(b, self)
    return b.full_like(self, for_integers, torch.bool)


# -- of two numbers ------------------------------------------------------------------------------


@lowering("aten::atan2", "aten::arctan2")
def atan2(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    dtype = type_promotion.float_dtype(self, other)
    wide = type_promotion.computing_dtype(dtype, math.pi)
    y, x = (b.cast(operand, wide) for operand in b.promote(self, other, dtype=dtype))
    # At the origin and between infinities y / x is NaN: there only the quadrant counts.
    on_axis = b.And(b.Equal(y, 0), b.Not(b.IsNaN(x)))
    ratio = b.Where(on_axis, y, b.Div(y, x))
    both_infinite = b.And(b.IsInf(y), b.IsInf(x))
    ratio = b.Where(both_infinite, b.Mul(b.Sign(y), b.Sign(x)), ratio)
    half_turn = b.Where(
        elementwise.sign_bit(b, y), b.scalar(-math.pi, x.dtype), b.scalar(math.pi, x.dtype)
    )
    turned = b.Where(elementwise.sign_bit(b, x), half_turn, 0)
    return b.cast(b.Add(b.Atan(ratio), turned), dtype)


@lowering("aten::logaddexp", base=math.e)
@lowering("aten::logaddexp2", base=2)
def log_of_sum(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar, base: float) -> Tensor:
    dtype = type_promotion.result_dtype(self, other)
    x, y = elementwise.rounded_once(b, b.promote(self, other))
    # Equal operands may both be infinite.
    difference = b.Where(b.Equal(x, y), 0, b.Sub(x, y))
    distance = elementwise.multiply(b, b.Neg(b.Abs(difference)), math.log(base))
    beyond = elementwise.softplus(b, distance)
    sum_ = b.Add(b.Max(x, y), elementwise.multiply(b, beyond, 1 / math.log(base)))
    return b.cast(sum_, dtype)
