"""Bessel functions and their kin, by the approximations of the Cephes library, as in ATen."""

from __future__ import annotations

import math
from typing import NamedTuple

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise, series
from sardonyx.lower.kernels.elementwise import Unary
from sardonyx.lower.values import Tensor

# -- J and Y -----------------------------------------------------------------------------------


# Rational functions of x^2 up to 5 and of 25 / x^2 beyond.


class _Order(NamedTuple):
    number: int
    zeros: tuple[float, float]
    """Squares of the first two of J."""
    turn: float


_ORDER_0 = _Order(0, (5.78318596294678452118, 30.4712623436620863991), math.pi / 4)
_ORDER_1 = _Order(1, (14.6819706421238932572, 49.2184563216946036703), 3 * math.pi / 4)


def _j_near(b: Builder, square: Tensor, order: _Order) -> Tensor:
    """J(x) for x up to 5, divided by x for order 1."""
    zeros = b.Mul(b.Sub(square, order.zeros[0]), b.Sub(square, order.zeros[1]))
    return b.Mul(zeros, series.rational(b, square, f"j{order.number}_near"))


def _far(b: Builder, x: Tensor, order: _Order, *, second_kind: bool) -> Tensor:
    """J(x) or Y(x) for x from 5 on: a wave whose height falls."""
    inverse = b.Div(5, x)
    square = b.Mul(inverse, inverse)
    modulus = series.rational(b, square, f"modulus_{order.number}")
    phase = b.Mul(inverse, series.rational(b, square, f"phase_{order.number}"))
    angle = b.Sub(x, order.turn)
    sine, cosine = b.Sin(angle), b.Cos(angle)
    if second_kind:
        wave = b.Add(b.Mul(modulus, sine), b.Mul(phase, cosine))
    else:
        wave = b.Sub(b.Mul(modulus, cosine), b.Mul(phase, sine))
    return b.Div(b.Mul(wave, math.sqrt(2 / math.pi)), b.Sqrt(x))


def _j0(b: Builder, x: Tensor) -> Tensor:
    x = b.Abs(x)
    near = _j_near(b, b.Mul(x, x), _ORDER_0)
    return b.Where(b.LessOrEqual(x, 5), near, _far(b, x, _ORDER_0, second_kind=False))


def _j1(b: Builder, x: Tensor) -> Tensor:
    near = b.Mul(x, _j_near(b, b.Mul(x, x), _ORDER_1))
    magnitude = b.Abs(x)
    far = b.Mul(b.Sign(x), _far(b, magnitude, _ORDER_1, second_kind=False))
    return b.Where(b.LessOrEqual(magnitude, 5), near, far)


def _y0(b: Builder, x: Tensor) -> Tensor:
    square = b.Mul(x, x)
    logarithm = b.Mul(b.Log(x), 2 / math.pi)
    product = b.Mul(logarithm, _j_near(b, square, _ORDER_0))
    near = b.Add(series.rational(b, square, "y0_near"), product)
    return b.Where(b.LessOrEqual(x, 5), near, _far(b, x, _ORDER_0, second_kind=True))


def _y1(b: Builder, x: Tensor) -> Tensor:
    square = b.Mul(x, x)
    product = b.Mul(b.Log(x), b.Mul(x, _j_near(b, square, _ORDER_1)))
    singular = b.Mul(b.Sub(product, b.Reciprocal(x)), 2 / math.pi)
    near = b.Add(b.Mul(x, series.rational(b, square, "y1_near")), singular)
    near = b.Where(b.Equal(x, 0), -math.inf, near)
    return b.Where(b.LessOrEqual(x, 5), near, _far(b, x, _ORDER_1, second_kind=True))


def _spherical_j0(b: Builder, x: Tensor) -> Tensor:
    terms = [(-1) ** k / math.factorial(2 * k + 1) for k in reversed(range(7))]
    near = series.polynomial(b, b.Mul(x, x), terms)
    far = b.Where(b.IsInf(x), 0, b.Div(b.Sin(x), x))
    return b.Where(b.Less(b.Abs(x), 0.5), near, far)


# -- I and K -----------------------------------------------------------------------------------

# Chebyshev series: exp(-x) I in x up to 8 and in 1 / x beyond, K in x^2 up to 2, then in 1 / x.


def _i0e(b: Builder, x: Tensor) -> Tensor:
    x = b.Abs(x)
    near = series.chebyshev(b, b.Sub(b.Div(x, 4), 1), "i0_near")
    return b.Where(b.LessOrEqual(x, 8), near, _i_far(b, x, "i0_far"))


def _i1e(b: Builder, x: Tensor) -> Tensor:
    magnitude = b.Abs(x)
    near = b.Mul(x, series.chebyshev(b, b.Sub(b.Div(magnitude, 4), 1), "i1_near"))
    far = b.Mul(b.Sign(x), _i_far(b, magnitude, "i1_far"))
    return b.Where(b.LessOrEqual(magnitude, 8), near, far)


def _i_far(b: Builder, x: Tensor, table: str) -> Tensor:
    place = b.Sub(b.Div(16, x), 1)
    return b.Div(series.chebyshev(b, place, table), b.Sqrt(x))


def i0(b: Builder, x: Tensor) -> Tensor:
    return b.Mul(b.Exp(b.Abs(x)), _i0e(b, x))


def _i1(b: Builder, x: Tensor) -> Tensor:
    return b.Mul(b.Exp(b.Abs(x)), _i1e(b, x))


def _k0_near(b: Builder, x: Tensor) -> Tensor:
    smooth = series.chebyshev(b, b.Sub(b.Mul(b.Mul(x, x), 0.5), 1), "k0_near")
    return b.Sub(smooth, b.Mul(b.Log(b.Mul(x, 0.5)), _i_near(b, x, "i0_near")))


def _k1_near(b: Builder, x: Tensor) -> Tensor:
    smooth = series.chebyshev(b, b.Sub(b.Mul(b.Mul(x, x), 0.5), 1), "k1_near")
    product = b.Mul(b.Log(b.Mul(x, 0.5)), b.Mul(x, _i_near(b, x, "i1_near")))
    return b.Where(b.Equal(x, 0), math.inf, b.Add(product, b.Div(smooth, x)))


def _i_near(b: Builder, x: Tensor, table: str) -> Tensor:
    scaled = series.chebyshev(b, b.Sub(b.Div(x, 4), 1), table)
    return b.Mul(b.Exp(x), scaled)


def _k(near: Unary, far: str, *, scaled: bool) -> Unary:
    def write(b: Builder, x: Tensor) -> Tensor:
        below = near(b, x)
        above = b.Div(series.chebyshev(b, b.Sub(b.Div(4, x), 1), far), b.Sqrt(x))
        if scaled:
            below = b.Mul(below, b.Exp(x))
        else:
            above = b.Mul(above, b.Exp(b.Neg(x)))
        return b.Where(b.LessOrEqual(x, 2), below, above)

    return write


# -- Airy --------------------------------------------------------------------------------------


def _airy_ai(b: Builder, x: Tensor) -> Tensor:
    """Above 2.09 a rational function of 1 / zeta, below -2.09 two of 1 / zeta^2."""
    magnitude = b.Abs(x)
    zeta = b.Mul(b.Mul(magnitude, b.Sqrt(magnitude)), 2 / 3)
    inverse = b.Reciprocal(zeta)
    height = b.Div(1 / math.sqrt(math.pi), b.Sqrt(b.Sqrt(magnitude)))
    above = b.Div(series.rational(b, inverse, "airy_above"), b.Mul(b.Exp(zeta), 2))
    square = b.Mul(inverse, inverse)
    sine = b.Add(b.Mul(square, series.rational(b, square, "airy_sine")), 1)
    cosine = b.Mul(inverse, series.rational(b, square, "airy_cosine"))
    angle = b.Add(zeta, math.pi / 4)
    below = b.Sub(b.Mul(b.Sin(angle), sine), b.Mul(b.Cos(angle), cosine))
    outer = b.Mul(height, b.Where(b.Less(x, 0), below, above))
    result = b.Where(b.And(b.GreaterOrEqual(x, -2.09), b.Less(x, 2.09)), _airy_near(b, x), outer)
    return b.Where(b.IsInf(x), math.nan, result)


def _airy_near(b: Builder, x: Tensor) -> Tensor:
    """Maclaurin's series: one in x^3, and one of that kind times x."""
    first, second = [1.0], [1.0]
    for k in range(1, 14):
        first.append(first[-1] / ((3 * k - 1) * 3 * k))
        second.append(second[-1] / (3 * k * (3 * k + 1)))
    cube = b.Mul(b.Mul(x, x), x)
    even = series.polynomial(b, cube, [0.355028053887817239260 * c for c in reversed(first)])
    odd = series.polynomial(b, cube, [0.258819403792806798405 * c for c in reversed(second)])
    return b.Sub(even, b.Mul(x, odd))


_OF_SELF: dict[str, Unary] = {
    "i0": i0,
    "special_i0e": _i0e,
    "special_i1": _i1,
    "special_i1e": _i1e,
    "special_modified_bessel_i0": i0,
    "special_modified_bessel_i1": _i1,
    "special_modified_bessel_k0": _k(_k0_near, "k0_far", scaled=False),
    "special_modified_bessel_k1": _k(_k1_near, "k1_far", scaled=False),
    "special_bessel_j0": _j0,
    "special_bessel_j1": _j1,
    "special_bessel_y0": _y0,
    "special_bessel_y1": _y1,
}
_OF_X: dict[str, Unary] = {
    "special_airy_ai": _airy_ai,
    "special_scaled_modified_bessel_k0": _k(_k0_near, "k0_far", scaled=True),
    "special_scaled_modified_bessel_k1": _k(_k1_near, "k1_far", scaled=True),
    "special_spherical_bessel_j0": _spherical_j0,
}
"""Whose schemas call their argument x."""


for _name, _function in _OF_SELF.items():
    elementwise.lowering_in_floats(f"aten::{_name}")(_function)
for _name, _function in _OF_X.items():
    elementwise.lowering_in_floats(f"aten::{_name}", renamed={"x": "self"})(_function)
