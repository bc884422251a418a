"""Functions of one number: exponentials, trigonometry, rounding, and tests for NaN and infinity."""

from __future__ import annotations

import math

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor
from sardonyx.lower.kernels import elementwise
from sardonyx.lower.kernels.elementwise import Unary
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor


def _node(op: str) -> Unary:
    def write(b: Builder, x: Tensor) -> Tensor:
        return b.op(op, x)

    return write


# -- of floats; integers and bools are promoted -------------------------------------------------


def _logarithm(base: float) -> Unary:
    """In float64 inside: a float32 quotient of logarithms is off for exact powers of the base."""

    def write(b: Builder, x: Tensor) -> Tensor:
        wide = x if x.is_complex else b.cast(x, torch.float64)
        return b.cast(b.Div(b.Log(wide), math.log(base)), x.dtype)

    return write


def _scaled(factor: float) -> Unary:
    def write(b: Builder, x: Tensor) -> Tensor:
        return elementwise.with_number(b, b.Mul, x, factor, x.dtype)

    return write


def _exp2(b: Builder, x: Tensor) -> Tensor:
    return b.Pow(b.scalar(2.0, x.dtype), x)


def _rsqrt(b: Builder, x: Tensor) -> Tensor:
    return b.Reciprocal(b.Sqrt(x))


def _rounded_once(function: Unary) -> Unary:
    """A function of several nodes, of which halves see the last alone."""

    def write(b: Builder, x: Tensor) -> Tensor:
        return elementwise.in_floats(b, function, x)

    return write


def _sinc(b: Builder, x: Tensor) -> Tensor:
    angle = b.Mul(b.cast(x, type_promotion.computing_dtype(x.dtype, math.pi)), math.pi)
    return b.cast(b.Where(b.Equal(x, 0), 1, b.Div(b.Sin(angle), angle)), x.dtype)


def _entropy(b: Builder, x: Tensor) -> Tensor:
    inside = b.Neg(b.Mul(x, b.Log(x)))
    outside = b.Where(b.Less(x, 0), -math.inf, inside)
    return b.Where(b.Equal(x, 0), 0, outside)


_OF_FLOATS: dict[str, Unary] = {
    "exp": _node("Exp"),
    "exp2 special_exp2": _exp2,
    "expm1 special_expm1": _rounded_once(elementwise.expm1),
    "log": _node("Log"),
    "log2": _logarithm(2),
    "log10": _logarithm(10),
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
    "deg2rad": _scaled(math.pi / 180),
    "rad2deg": _scaled(180 / math.pi),
    "sinc special_sinc": _sinc,
    "special_entr": _rounded_once(_entropy),
}


def _register_of_floats(names: str, function: Unary) -> None:
    @lowering(*(f"aten::{name}" for name in names.split()))
    def of_floats(b: Builder, self: Tensor) -> Tensor:
        return function(b, b.cast(self, type_promotion.float_dtype(self)))


for _names, _function in _OF_FLOATS.items():
    _register_of_floats(_names, _function)


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


_ROUNDING: dict[str, Unary] = {
    "floor": _node("Floor"),
    "ceil": _node("Ceil"),
    "round": _node("Round"),
    "trunc fix": elementwise.truncate,
    "frac": _frac,
}


def _register_rounding(names: str, function: Unary) -> None:
    @lowering(*(f"aten::{name}" for name in names.split()))
    def rounding(b: Builder, self: Tensor) -> Tensor:
        return function(b, self) if self.is_floating_point else self


for _names, _function in _ROUNDING.items():
    _register_rounding(_names, _function)


@lowering("aten::round.decimals", "aten::special_round")
def round_to_decimals(b: Builder, self: Tensor, decimals: int = 0) -> Tensor:
    if not self.is_floating_point:
        if decimals < 0:
            raise b.refuse("integers cannot be rounded to decimals")
        return self
    if decimals == 0:
        return b.Round(self)
    scale = 10.0 ** abs(decimals)
    # Half precision would overflow on the way; PyTorch computes it in float32 too.
    x = b.cast(self, torch.float32) if self.dtype.itemsize < 4 else self
    if decimals > 0:
        x = b.Div(b.Round(b.Mul(x, scale)), scale)
    else:
        x = b.Mul(b.Round(b.Div(x, scale)), scale)
    return b.cast(x, self.dtype)


# -- NaN and infinity ----------------------------------------------------------------------------


def _isfinite(b: Builder, x: Tensor) -> Tensor:
    return b.Not(b.Or(b.IsNaN(x), b.IsInf(x)))


def _infinity(negative: int, positive: int) -> Unary:
    def write(b: Builder, x: Tensor) -> Tensor:
        return b.IsInf(x, detect_negative=negative, detect_positive=positive)

    return write


_TESTS: dict[str, tuple[Unary, bool]] = {
    "isnan": (_node("IsNaN"), False),
    "isinf": (_node("IsInf"), False),
    "isposinf": (_infinity(0, 1), False),
    "isneginf": (_infinity(1, 0), False),
    "isfinite": (_isfinite, True),
}
"""The test, and its answer for every integer."""


def _register_test(name: str, function: Unary, for_integers: bool) -> None:
    @lowering(f"aten::{name}")
    def test(b: Builder, self: Tensor) -> Tensor:
        if self.is_floating_point or self.is_complex:
            return function(b, self)
        return b.full_like(self, for_integers, torch.bool)


for _name, (_test, _for_integers) in _TESTS.items():
    _register_test(_name, _test, _for_integers)


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


def _register_log_of_sum(name: str, base: float) -> None:
    @lowering(name)
    def log_of_sum(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
        dtype = type_promotion.result_dtype(self, other)
        wide = type_promotion.once_rounded_dtype(dtype)
        x, y = (b.cast(operand, wide) for operand in b.promote(self, other))
        # Equal operands may both be infinite.
        difference = b.Where(b.Equal(x, y), 0, b.Sub(x, y))
        distance = elementwise.multiply(b, b.Neg(b.Abs(difference)), math.log(base))
        beyond = elementwise.softplus(b, distance)
        sum_ = b.Add(b.Max(x, y), elementwise.multiply(b, beyond, 1 / math.log(base)))
        return b.cast(sum_, dtype)


_register_log_of_sum("aten::logaddexp", math.e)
_register_log_of_sum("aten::logaddexp2", 2)


def _register_product_with_log(names: tuple[str, ...], logarithm: Unary) -> None:
    """x * log(y), with 0 where x is 0, unless y is NaN."""

    @lowering(*names)
    def product_with_log(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
        x, y = b.promote(self, other, dtype=type_promotion.float_dtype(self, other))
        zero = b.And(b.Equal(x, 0), b.Not(b.IsNaN(y)))
        return b.Where(zero, 0, b.Mul(x, logarithm(b, y)))


_register_product_with_log(
    (
        "aten::xlogy.Tensor",
        "aten::xlogy.Scalar_Other",
        "aten::xlogy.Scalar_Self",
        "aten::special_xlogy",
        "aten::special_xlogy.other_scalar",
        "aten::special_xlogy.self_scalar",
    ),
    _node("Log"),
)
_register_product_with_log(
    (
        "aten::special_xlog1py",
        "aten::special_xlog1py.other_scalar",
        "aten::special_xlog1py.self_scalar",
    ),
    elementwise.log1p,
)
