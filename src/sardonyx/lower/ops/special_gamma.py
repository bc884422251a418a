"""The gamma function's family: its logarithm, the derivatives of that, and incomplete ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise, loops, series
from sardonyx.lower.kernels.axes import alike
from sardonyx.lower.kernels.elementwise import lowering_in_floats
from sardonyx.lower.ops.special_error import erfc
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor

_STIRLING = (
    -3617 / 122400,
    1 / 156,
    -691 / 360360,
    1 / 1188,
    -1 / 1680,
    1 / 1260,
    -1 / 360,
    1 / 12,
)
"""Of Stirling's series for log(gamma(x)), a polynomial in 1 / x^2 over x."""
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
"""Of the asymptotic series of digamma, a polynomial in 1 / x^2 times 1 / x^2."""
_TRIGAMMA = (-1 / 30, 1 / 42, -1 / 30, 1 / 6)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
"""B2, B4, B6, ..."""


# -- the logarithm -----------------------------------------------------------------------------


@lowering_in_floats("aten::lgamma")
def _log_gamma(b: Builder, x: Tensor) -> Tensor:
    magnitude = b.Abs(x)
    positive = _log_gamma_of_positive(b, magnitude)
    # gamma(-x) gamma(x) = -pi / (x sin(pi x)); the sine's period is kept exactly.
    rest = b.Abs(b.Sub(magnitude, b.Round(magnitude)))
    sine = b.Log(b.Div(b.Sin(b.Mul(rest, math.pi)), math.pi))
    # At whole numbers, as all large ones are, the sine decides, whose logarithm is -inf.
    finite = b.Min(positive, torch.finfo(x.dtype).max)
    negative = b.Neg(b.Add(b.Add(sine, b.Log(magnitude)), finite))
    result = b.Where(b.Less(x, 0), negative, positive)
    return b.Where(b.IsInf(x), math.inf, result)


def _log_gamma_of_positive(b: Builder, x: Tensor) -> Tensor:
    """Near an integer n from log(gamma(1 + x - n)), precise at the zeros 1 and 2; then Stirling."""
    wide = x.dtype == torch.float64
    steps = 8 if wide else 4
    whole = b.Round(x)
    rest = b.Sub(x, whole)
    # The series is of log(gamma(1 + rest)) / rest.
    near = b.Mul(rest, series.chebyshev(b, b.Mul(rest, 2), "log_gamma"))
    product = b.Sub(x, 1)  # gamma(x) = (x - 1) (x - 2) ... gamma(1 + x - n)
    for k in range(2, steps):
        product = b.Mul(product, b.Where(b.Greater(whole, k), b.Sub(x, k), 1))
    below = b.Equal(whole, 0)  # gamma(x) = gamma(1 + x) / x
    product = b.Where(b.Greater(whole, 1), product, b.Where(below, x, 1))
    factor = b.Log(product)
    near = b.Add(near, b.Where(below, b.Neg(factor), factor))
    return b.Where(b.LessOrEqual(whole, steps), near, _stirling(b, x))


def _stirling(b: Builder, x: Tensor) -> Tensor:
    leading = b.Mul(b.Sub(x, 0.5), b.Sub(b.Log(x), 1))
    return b.Add(b.Add(leading, (math.log(2 * math.pi) - 1) / 2), _stirling_tail(b, x))


def _stirling_tail(b: Builder, x: Tensor) -> Tensor:
    terms = _STIRLING if x.dtype == torch.float64 else _STIRLING[-5:]
    return b.Div(series.polynomial(b, b.Reciprocal(b.Mul(x, x)), terms), x)


# -- its derivatives ---------------------------------------------------------------------------


@lowering_in_floats("aten::digamma")
def _digamma(b: Builder, x: Tensor) -> Tensor:
    negative = b.Less(x, 0)
    result = _digamma_of_positive(b, b.Where(negative, b.Sub(1, x), x))
    rest = b.Sub(x, b.Round(x))
    # digamma(1 - x) - digamma(x) = pi cot(pi x), which has poles at the integers.
    angle = b.Mul(rest, math.pi)
    reflected = b.Sub(result, b.Mul(b.Div(b.Cos(angle), b.Sin(angle)), math.pi))
    reflected = b.Where(b.Equal(x, b.Floor(x)), math.nan, reflected)
    return b.Where(negative, reflected, result)


def _digamma_of_positive(b: Builder, x: Tensor) -> Tensor:
    steps = 10 if x.dtype == torch.float64 else 6
    small = b.Less(x, steps)
    total = b.Reciprocal(x)
    for k in range(1, steps):
        total = b.Add(total, b.Reciprocal(b.Add(x, k)))
    x = b.Where(small, b.Add(x, steps), x)
    square = b.Reciprocal(b.Mul(x, x))
    tail = b.Add(b.Div(0.5, x), b.Mul(square, series.polynomial(b, square, _DIGAMMA)))
    return b.Sub(b.Sub(b.Log(x), tail), b.Where(small, total, 0))


@lowering("aten::polygamma")
def polygamma(b: Builder, n: int, self: Tensor) -> Tensor:
    if n < 0:
        raise b.refuse("polygamma of a negative order")
    if n == 0:
        return elementwise.in_floats(b, _digamma, self)
    if n == 1:
        return elementwise.in_floats(b, _trigamma, self)

    def derivative(b: Builder, x: Tensor) -> Tensor:
        factor = math.factorial(n) * (1 if n % 2 else -1)
        return b.Mul(_zeta(b, b.scalar(n + 1, x.dtype), x), float(factor))

    return elementwise.in_floats(b, derivative, self)


def _trigamma(b: Builder, x: Tensor) -> Tensor:
    reflects = b.Less(x, 0.5)
    sine = b.Sin(b.Mul(x, math.pi))
    x = b.Where(reflects, b.Sub(1, x), x)
    total = b.scalar(0, x.dtype)
    for k in range(6):
        shifted = b.Add(x, k) if k else x
        total = b.Add(total, b.Reciprocal(b.Mul(shifted, shifted)))
    x = b.Add(x, 6)
    square = b.Reciprocal(b.Mul(x, x))
    tail = b.Add(b.Div(0.5, x), b.Mul(square, series.polynomial(b, square, _TRIGAMMA)))
    total = b.Add(total, b.Div(b.Add(tail, 1), x))
    # trigamma(x) + trigamma(1 - x) = (pi / sin(pi x))^2
    reflected = b.Sub(b.Div(math.pi**2, b.Mul(sine, sine)), total)
    return b.Where(reflects, reflected, total)


@lowering("aten::special_zeta", "aten::special_zeta.other_scalar", "aten::special_zeta.self_scalar")
def zeta(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    return elementwise.in_floats(b, _zeta, self, other)


def _zeta(b: Builder, x: Tensor, q: Tensor) -> Tensor:
    """The sum of (q + k)^-x over all k from 0 on: those with q + k up to 9 one by one, the others
    by the formula of Euler and Maclaurin."""
    dtype = x.dtype
    x, q = b.cast(x, torch.float64), b.cast(q, torch.float64)
    whole = b.Equal(q, b.Floor(q))
    pole = b.And(b.LessOrEqual(q, 0), whole)
    x, start = alike(b, x, b.Where(pole, 1, q))
    power = b.Neg(x)
    # Nine steps at least: the formula is good only where x is not much larger than q + k.
    last = b.Max(b.Min(b.Add(start, 8), 1e9), 9.0)

    def unfinished(carried: Sequence[Tensor]) -> Tensor:
        return b.LessOrEqual(carried[0], last)

    def step(number: Tensor, carried: Sequence[Tensor]) -> list[Tensor]:
        place, total, term = carried
        active = unfinished(carried)
        following = b.Where(active, b.Add(place, 1), place)
        added = b.Pow(following, power)
        return [
            following,
            b.Add(total, b.Where(active, added, 0)),
            b.Where(active, added, term),
        ]

    first = b.Pow(start, power)
    place, total, term = loops.repeat_while(b, unfinished, step, [start, first, first])
    total = b.Add(total, b.Div(b.Mul(term, place), b.Sub(x, 1)))
    total = b.Sub(total, b.Mul(term, 0.5))
    factor = b.Div(b.Mul(term, x), place)
    square = b.Mul(place, place)
    for k, number in enumerate(_BERNOULLI, 1):
        total = b.Add(total, b.Mul(factor, number / math.factorial(2 * k)))
        if k < len(_BERNOULLI):
            rising = b.Mul(b.Add(x, 2 * k - 1), b.Add(x, 2 * k))
            factor = b.Mul(factor, b.Div(rising, square))
    undefined = b.And(b.Less(q, 0), b.Not(b.Equal(x, b.Floor(x))))
    total = b.Where(undefined, math.nan, total)
    total = b.Where(b.Or(pole, b.Equal(x, 1)), math.inf, total)
    total = b.Where(b.Less(x, 1), math.nan, total)
    return b.cast(total, dtype)


# -- incomplete --------------------------------------------------------------------------------

_LARGEST_ITERATED = 1e6
_MOST_STEPS = 20_000
"""The series and the fraction need less than 9 sqrt(a) terms."""


@lowering("aten::igamma", upper=False)
@lowering("aten::igammac", upper=True)
def igamma(b: Builder, self: Tensor, other: Tensor, upper: bool) -> Tensor:
    return elementwise.in_floats(b, partial(_incomplete, upper=upper), self, other)


def _incomplete(b: Builder, a: Tensor, x: Tensor, *, upper: bool) -> Tensor:
    """The regularized incomplete gamma functions, in float64: their factor is a difference of
    large logarithms."""
    dtype = a.dtype
    given = alike(b, b.cast(a, torch.float64), b.cast(x, torch.float64))
    inside = b.And(*(b.And(b.Greater(v, 0), b.Less(v, math.inf)) for v in given))
    a, x = (b.Where(inside, v, 1) for v in given)
    large = b.Greater(a, _LARGEST_ITERATED)
    beyond = b.And(b.Greater(x, 1), b.Greater(x, a))
    factor = _incomplete_factor(b, a, x)
    rising = b.Not(b.Or(large, beyond))
    lower_part = b.Mul(factor, _lower_series(b, a, b.Where(rising, x, 0)))
    falling = b.And(beyond, b.Not(large))
    fraction = _upper_fraction(b, b.Where(falling, a, 1), b.Where(falling, x, 1))
    upper_part = b.Mul(factor, fraction)
    asymptotic = _large_upper(b, a, x)
    if upper:
        result = b.Where(beyond, upper_part, b.Sub(1, lower_part))
        result = b.Where(large, asymptotic, result)
    else:
        result = b.Where(beyond, b.Sub(1, upper_part), lower_part)
        result = b.Where(large, b.Sub(1, asymptotic), result)
    a, x = given
    result = b.Where(b.Or(b.IsNaN(a), b.IsNaN(x)), math.nan, result)
    # At the borders: all of it below infinity, nothing below 0, and a point mass at 0 for a = 0.
    all_upper = b.Or(b.Equal(x, 0), b.IsInf(a))
    all_lower = b.Or(b.And(b.Equal(a, 0), b.Not(b.IsNaN(x))), b.IsInf(x))
    result = b.Where(all_upper, float(upper), result)
    result = b.Where(all_lower, float(not upper), result)
    outside = b.Or(b.Less(x, 0), b.Less(a, 0))
    undefined = b.Or(outside, b.And(all_upper, all_lower))
    return b.cast(b.Where(undefined, math.nan, result), dtype)


def _incomplete_factor(b: Builder, a: Tensor, x: Tensor) -> Tensor:
    """x^a exp(-x) / gamma(a)."""
    plain = b.Sub(b.Sub(b.Mul(a, b.Log(x)), x), _log_gamma(b, a))
    # By Stirling's formula for large a, where the three would cancel.
    scaled = b.Mul(b.Log(b.Div(a, 2 * math.pi)), 0.5)
    large = b.Sub(b.Sub(scaled, b.Mul(a, _half_eta_squared(b, a, x))), _stirling_tail(b, a))
    return b.Exp(b.Where(b.Less(a, 10), plain, large))


def _half_eta_squared(b: Builder, a: Tensor, x: Tensor) -> Tensor:
    """(x - a) / a - log(x / a), which is 0 at x = a and positive elsewhere."""
    distance = b.Div(b.Sub(x, a), a)
    return b.Sub(distance, elementwise.log1p(b, distance))


def _lower_series(b: Builder, a: Tensor, x: Tensor) -> Tensor:
    """1/a + x/(a(a+1)) + x^2/(a(a+1)(a+2)) + ..."""
    first = b.Reciprocal(a)

    def unfinished(carried: Sequence[Tensor]) -> Tensor:
        term, total = carried
        return b.Greater(term, b.Mul(total, 2.0**-53))

    def step(number: Tensor, carried: Sequence[Tensor]) -> list[Tensor]:
        term, total = carried
        place = b.Add(a, b.cast(b.Add(number, 1), a.dtype))
        term = b.Mul(term, b.Div(x, place))
        return [term, b.Add(total, term)]

    _, total = loops.repeat_while(b, unfinished, step, [first, first], _MOST_STEPS)
    return total


def _upper_fraction(b: Builder, a: Tensor, x: Tensor) -> Tensor:
    """1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - ...))), by Lentz's method."""
    base = b.Sub(b.Add(x, 1), a)
    first = b.Reciprocal(base)

    def unfinished(carried: Sequence[Tensor]) -> Tensor:
        return b.Greater(b.Abs(b.Sub(carried[3], 1)), 2.0**-50)

    def step(number: Tensor, carried: Sequence[Tensor]) -> list[Tensor]:
        above, below, total, _ = carried
        k = b.cast(b.Add(number, 1), a.dtype)
        numerator = b.Mul(k, b.Sub(a, k))
        place = b.Add(base, b.Mul(k, 2))
        below = b.Reciprocal(b.Add(b.Mul(numerator, below), place))
        above = b.Add(place, b.Div(numerator, above))
        change = b.Mul(above, below)
        return [above, below, b.Mul(total, change), change]

    start = [b.full_like(base, 1e300), first, first, b.full_like(base, 0)]
    return loops.repeat_while(b, unfinished, step, start, _MOST_STEPS)[2]


def _large_upper(b: Builder, a: Tensor, x: Tensor) -> Tensor:
    """Temme's uniform expansion for large a; to the order that a beyond 10^6 needs."""
    half = _half_eta_squared(b, a, x)
    eta = b.Mul(b.Sqrt(b.Max(b.Mul(half, 2), 0.0)), b.Sign(b.Sub(x, a)))
    order_0 = series.polynomial(b, eta, (1 / 864, -2 / 135, 1 / 12, -1 / 3))
    order_1 = b.Div(series.polynomial(b, eta, (-1 / 288, -1 / 540)), a)
    density = b.Div(b.Exp(b.Neg(b.Mul(a, half))), b.Sqrt(b.Mul(a, 2 * math.pi)))
    tail = b.Mul(erfc(b, b.Mul(eta, b.Sqrt(b.Mul(a, 0.5)))), 0.5)
    return b.Add(tail, b.Mul(density, b.Add(order_0, order_1)))
