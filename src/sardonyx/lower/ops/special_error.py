"""The error function's family: the normal distribution's tails, and their inverses."""

from __future__ import annotations

import math

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise, series
from sardonyx.lower.kernels.elementwise import lowering_in_floats
from sardonyx.lower.values import Tensor

# -- tails -------------------------------------------------------------------------------------


@lowering_in_floats("aten::special_erfcx")
def erfcx(b: Builder, x: Tensor) -> Tensor:
    """exp(x^2) erfc(x)."""
    positive = _erfcx_of_positive(b, b.Abs(x))
    negative = b.Sub(b.Mul(b.Exp(b.Mul(x, x)), 2), positive)
    return b.Where(b.Less(x, 0), negative, positive)


def _erfcx_of_positive(b: Builder, x: Tensor) -> Tensor:
    """A Chebyshev series of (1 + 2 x) erfcx(x) in (x - 3.75) / (x + 3.75)."""
    place = b.Sub(1, b.Div(7.5, b.Add(x, 3.75)))
    return b.Div(series.chebyshev(b, place, "erfcx"), b.Add(b.Mul(x, 2), 1))


@lowering_in_floats("aten::erfc", "aten::special_erfc")
def erfc(b: Builder, x: Tensor) -> Tensor:
    """1 - erf(x), without the cancellation for positive x."""
    magnitude = b.Abs(x)
    tail = b.Mul(b.Exp(b.Neg(b.Mul(x, x))), _erfcx_of_positive(b, magnitude))
    return b.Where(b.Less(x, 0), b.Sub(2, tail), tail)


@lowering_in_floats("aten::special_log_ndtr")
def log_ndtr(b: Builder, x: Tensor) -> Tensor:
    scaled = b.Mul(x, math.sqrt(0.5))
    square = b.Mul(scaled, scaled)
    fraction = b.Mul(_erfcx_of_positive(b, b.Abs(scaled)), 0.5)
    below = b.Sub(b.Log(fraction), square)
    upper_tail = b.Mul(b.Exp(b.Neg(square)), fraction)
    above = elementwise.log1p(b, b.Neg(b.Where(b.Less(x, 0), b.Sub(1, upper_tail), upper_tail)))
    return b.Where(b.Less(x, -1), below, above)


# -- their inverses ----------------------------------------------------------------------------


@lowering_in_floats("aten::special_ndtri")
def ndtri(b: Builder, x: Tensor) -> Tensor:
    return _normal_quantile(b, b.Sub(x, 0.5), b.Min(x, b.Sub(1, x)))


@lowering_in_floats("aten::erfinv", "aten::special_erfinv")
def erfinv(b: Builder, x: Tensor) -> Tensor:
    tail = b.Mul(b.Sub(1, b.Abs(x)), 0.5)
    return b.Mul(_normal_quantile(b, b.Mul(x, 0.5), tail), math.sqrt(0.5))


def _normal_quantile(b: Builder, centered: Tensor, tail: Tensor) -> Tensor:
    """Where the normal distribution reaches the probability 0.5 + centered; `tail` is what lies
    beyond, on the nearer side. Both are given so that neither is rounded.

    As Cephes' ndtri: about the middle, then for z = sqrt(-2 log(tail)) up to 8, and beyond.
    """
    square = b.Mul(centered, centered)
    bend = b.Mul(square, series.rational(b, square, "normal_middle"))
    middle = b.Mul(b.Add(centered, b.Mul(centered, bend)), math.sqrt(2 * math.pi))
    depth = b.Sqrt(b.Mul(b.Log(tail), -2))
    inverse = b.Reciprocal(depth)
    correction = b.Where(
        b.Less(depth, 8),
        series.rational(b, inverse, "normal_tail"),
        series.rational(b, inverse, "normal_far_tail"),
    )
    outer = b.Sub(b.Sub(depth, b.Div(b.Log(depth), depth)), b.Mul(inverse, correction))
    outer = b.Where(b.Equal(tail, 0), math.inf, outer)
    outer = b.Where(b.Less(centered, 0), b.Neg(outer), outer)
    return b.Where(b.Greater(tail, math.exp(-2)), middle, outer)
