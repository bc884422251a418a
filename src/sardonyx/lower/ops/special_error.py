"""The error function's family: the normal distribution's tails, and their inverses."""

from __future__ import annotations

import math

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise, series
from sardonyx.lower.kernels.elementwise import lowering_in_floats
from sardonyx.lower.kernels.series import Rational
from sardonyx.lower.values import Tensor

_ERFCX = (
    2.3551578691348034,
    -0.004590054580646478,
    -0.08424913336651792,
    0.05920993999819189,
    -0.026658668435305753,
    0.009074997670705265,
    -0.002413163540417608,
    0.0004907758365258086,
    -6.916973302501207e-05,
    4.13902798607301e-06,
    7.74038306619849e-07,
    -2.1886401049234397e-07,
    1.076499946567091e-08,
    4.521959811218287e-09,
    -7.754400208831351e-10,
    -6.318088340886684e-11,
    2.86879501093067e-11,
    1.9455868545777347e-13,
    -9.65469674843344e-13,
    3.25254814814874e-14,
    3.3478119482868056e-14,
    -1.864562880419313e-15,
    -1.2507950530688648e-15,
    7.418235256624044e-17,
    5.068148904796111e-17,
    -2.2370566594359995e-18,
    -2.187342944303018e-18,
)
"""Chebyshev coefficients of (1 + 2 x) erfcx(x) in (x - 3.75) / (x + 3.75), for x from 0 on."""

# Of Cephes' ndtri: about the middle, then for z = sqrt(-2 log(y)) up to 8, and beyond.
_NORMAL_MIDDLE = Rational(
    (
        -59.96335010141079,
        98.00107541859997,
        -56.67628574690703,
        13.931260938727968,
        -1.2391658386738125,
    ),
    (
        1.0,
        1.9544885833814176,
        4.676279128988815,
        86.36024213908905,
        -225.46268785411937,
        200.26021238006066,
        -82.03722561683334,
        15.90562251262117,
        -1.1833162112133,
    ),
)
_NORMAL_TAIL = Rational(
    (
        4.0554489230596245,
        31.525109459989388,
        57.16281922464213,
        44.08050738932008,
        14.684956192885803,
        2.1866330685079025,
        -0.1402560791713545,
        -0.03504246268278482,
        -0.0008574567851546854,
    ),
    (
        1.0,
        15.779988325646675,
        45.39076351288792,
        41.3172038254672,
        15.04253856929075,
        2.504649462083094,
        -0.14218292285478779,
        -0.03808064076915783,
        -0.0009332594808954574,
    ),
)
_NORMAL_FAR_TAIL = Rational(
    (
        3.2377489177694603,
        6.915228890689842,
        3.9388102529247444,
        1.3330346081580755,
        0.20148538954917908,
        0.012371663481782003,
        0.00030158155350823543,
        2.6580697468673755e-06,
        6.239745391849833e-09,
    ),
    (
        1.0,
        6.02427039364742,
        3.6798356385616087,
        1.3770209948908132,
        0.21623699359449663,
        0.013420400608854318,
        0.00032801446468212774,
        2.8924786474538068e-06,
        6.790194080099813e-09,
    ),
)


# -- tails -------------------------------------------------------------------------------------


@lowering_in_floats("aten::special_erfcx")
def erfcx(b: Builder, x: Tensor) -> Tensor:
    """exp(x^2) erfc(x)."""
    positive = _erfcx_of_positive(b, b.Abs(x))
    negative = b.Sub(b.Mul(b.Exp(b.Mul(x, x)), 2), positive)
    return b.Where(b.Less(x, 0), negative, positive)


def _erfcx_of_positive(b: Builder, x: Tensor) -> Tensor:
    place = b.Sub(1, b.Div(7.5, b.Add(x, 3.75)))
    return b.Div(series.chebyshev(b, place, _ERFCX), b.Add(b.Mul(x, 2), 1))


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
    beyond, on the nearer side. Both are given so that neither is rounded."""
    square = b.Mul(centered, centered)
    bend = b.Mul(square, series.rational(b, square, _NORMAL_MIDDLE))
    middle = b.Mul(b.Add(centered, b.Mul(centered, bend)), math.sqrt(2 * math.pi))
    depth = b.Sqrt(b.Mul(b.Log(tail), -2))
    inverse = b.Reciprocal(depth)
    correction = b.Where(
        b.Less(depth, 8),
        series.rational(b, inverse, _NORMAL_TAIL),
        series.rational(b, inverse, _NORMAL_FAR_TAIL),
    )
    outer = b.Sub(b.Sub(depth, b.Div(b.Log(depth), depth)), b.Mul(inverse, correction))
    outer = b.Where(b.Equal(tail, 0), math.inf, outer)
    outer = b.Where(b.Less(centered, 0), b.Neg(outer), outer)
    return b.Where(b.Greater(tail, math.exp(-2)), middle, outer)
