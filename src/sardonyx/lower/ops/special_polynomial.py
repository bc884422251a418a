"""Orthogonal polynomials of a degree that may be a tensor, by their recurrences of three terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise, loops
from sardonyx.lower.kernels.axes import alike
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor

_UNROLLED = 32
"""Up to which degree, where it is a number, a recurrence is written out."""

First = Callable[[Builder, Tensor], Tensor]
"""The polynomial of degree 1."""
Step = Callable[[Builder, Tensor, Tensor, Tensor, Tensor], Tensor]
"""(x, k, P[k], P[k - 1]) -> P[k + 1]"""
Closed = Callable[[Builder, Tensor, Tensor], Tensor]
"""(x, degree) -> the polynomial."""


@dataclass(frozen=True)
class _Family:
    first: First
    step: Step
    within: Closed | None = None
    """Between -1 and 1, where there is such a form and the degree is above `directly`."""
    directly: int = 0
    ends: tuple[Closed, Closed] | None = None
    """At 1 and -1, but for the sign of odd degrees at -1."""
    degrees: dict[torch.dtype, int] | None = None
    """Above which PyTorch gives NaN."""
    shifted: bool = False
    """Whether it is in 2 x - 1: on the interval from 0 to 1."""


# -- evaluation --------------------------------------------------------------------------------


def evaluate(b: Builder, x: Tensor | Scalar, n: Tensor | Scalar, family: _Family) -> Tensor:
    def place(x: Tensor) -> Tensor:
        return b.Sub(b.Add(x, x), 1) if family.shifted else x

    if isinstance(n, (int, float)) and 0 <= n < _UNROLLED + 1:
        degree = int(n)
        return elementwise.in_floats(
            b, lambda b, x: _of_known_degree(b, family, place(x), degree), x
        )
    return elementwise.in_floats(b, lambda b, x, n: _of_degrees(b, family, place(x), n), x, n)


def _of_known_degree(b: Builder, family: _Family, x: Tensor, degree: int) -> Tensor:
    if degree == 0:
        return b.full_like(x, 1)
    before, last = b.scalar(1, x.dtype), family.first(b, x)
    for k in range(1, degree):
        before, last = last, family.step(b, x, b.scalar(k, x.dtype), last, before)
    if family.within is None or degree <= family.directly:
        return last
    within = family.within(b, x, b.scalar(degree, x.dtype))
    return b.Where(b.Less(b.Abs(x), 1), within, last)


def _of_degrees(b: Builder, family: _Family, x: Tensor, n: Tensor) -> Tensor:
    x, n = alike(b, x, elementwise.truncate(b, n))
    # A degree that is no int64 counts as a negative one.
    n = b.Where(b.And(b.GreaterOrEqual(n, 0), b.Less(n, 2.0**63)), n, -1)
    left = b.Sub(n, 1)
    if family.within is not None:
        by_form = b.And(b.Less(b.Abs(x), 1), b.Greater(n, family.directly))
        left = b.Where(b.Or(by_form, b.Equal(b.Abs(x), 1)), 0, left)
    if family.degrees is not None:
        left = b.Where(b.Greater(n, family.degrees[x.dtype]), 0, left)

    def unfinished(carried: Sequence[Tensor]) -> Tensor:
        left, last, _ = carried
        return b.And(b.Greater(left, 0), b.Not(b.IsNaN(last)))

    def step(number: Tensor, carried: Sequence[Tensor]) -> list[Tensor]:
        left, last, before = carried
        active = unfinished(carried)
        k = b.cast(b.Add(number, 1), x.dtype)
        following = family.step(b, x, k, last, before)
        return [b.Sub(left, 1), b.Where(active, following, last), last]

    first = family.first(b, x)
    start = [left, first, b.full_like(first, 1)]
    result = loops.repeat_while(b, unfinished, step, start)[1]
    if family.within is not None:
        result = b.Where(by_form, family.within(b, x, n), result)
    if family.ends is not None:
        at_one, at_minus_one = (end(b, x, n) for end in family.ends)
        sign = b.Sub(1, b.Mul(b.Mod(n, b.scalar(2, n.dtype), fmod=1), 2))
        result = b.Where(b.Equal(x, 1), at_one, result)
        result = b.Where(b.Equal(x, -1), b.Mul(sign, at_minus_one), result)
    if family.degrees is not None:
        result = b.Where(b.Greater(n, family.degrees[x.dtype]), math.nan, result)
    result = b.Where(b.Equal(n, 0), 1, result)
    return b.Where(b.Less(n, 0), 0, result)


# -- Chebyshev ---------------------------------------------------------------------------------


def _double(b: Builder, x: Tensor) -> Tensor:
    return b.Add(x, x)


def _chebyshev_step(b: Builder, x: Tensor, k: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return b.Sub(b.Mul(_double(b, x), last), before)


def _one(b: Builder, x: Tensor, n: Tensor) -> Tensor:
    return b.scalar(1, n.dtype)


def _next(b: Builder, x: Tensor, n: Tensor) -> Tensor:
    return b.Add(n, 1)


def _next_odd(b: Builder, x: Tensor, n: Tensor) -> Tensor:
    return b.Add(_double(b, n), 1)


def _wave(function: str, shift: float, over: float | None) -> Closed:
    """cos or sin of (n + shift) angle, divided by that of `over` times the angle."""

    def form(b: Builder, x: Tensor, n: Tensor) -> Tensor:
        angle = b.Acos(x)
        wave = b.op(function, b.Mul(b.Add(n, shift) if shift else n, angle))
        if over is not None:
            wave = b.Div(wave, b.op(function, b.Mul(angle, over)))
        return wave

    return form


def _chebyshev(directly: dict[str, int]) -> dict[str, _Family]:
    """The four kinds; PyTorch uses the closed form from different degrees on."""
    return {
        "t": _Family(
            lambda b, x: x, _chebyshev_step, _wave("Cos", 0, None), directly["t"], (_one, _one)
        ),
        "u": _Family(_double, _chebyshev_step, _wave("Sin", 1, 1), directly["u"], (_next, _next)),
        "v": _Family(
            lambda b, x: b.Sub(_double(b, x), 1),
            _chebyshev_step,
            _wave("Cos", 0.5, 0.5),
            directly["v"],
            (_one, _next_odd),
        ),
        "w": _Family(
            lambda b, x: b.Add(_double(b, x), 1),
            _chebyshev_step,
            _wave("Sin", 0.5, 0.5),
            directly["w"],
            (_next_odd, _one),
        ),
    }


# -- the others --------------------------------------------------------------------------------


def _hermite_step(b: Builder, x: Tensor, k: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return b.Sub(b.Mul(_double(b, x), last), b.Mul(_double(b, k), before))


def _probabilist_step(b: Builder, x: Tensor, k: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return b.Sub(b.Mul(x, last), b.Mul(k, before))


def _laguerre_step(b: Builder, x: Tensor, k: Tensor, last: Tensor, before: Tensor) -> Tensor:
    factor = b.Add(_double(b, k), b.Sub(1, x))
    return b.Div(b.Sub(b.Mul(factor, last), b.Mul(k, before)), b.Add(k, 1))


def _legendre_step(b: Builder, x: Tensor, k: Tensor, last: Tensor, before: Tensor) -> Tensor:
    factor = b.Mul(b.Add(_double(b, k), 1), x)
    return b.Div(b.Sub(b.Mul(factor, last), b.Mul(k, before)), b.Add(k, 1))


_HERMITE_DEGREES = {torch.float32: 128, torch.float64: 512}
_FAMILIES = {
    **{
        f"chebyshev_polynomial_{kind}": family
        for kind, family in _chebyshev({"t": 6, "u": 8, "v": 8, "w": 8}).items()
    },
    **{
        f"shifted_chebyshev_polynomial_{kind}": replace(family, shifted=True)
        for kind, family in _chebyshev({"t": 6, "u": 6, "v": 6, "w": 4}).items()
    },
    "hermite_polynomial_h": _Family(_double, _hermite_step, degrees=_HERMITE_DEGREES),
    "hermite_polynomial_he": _Family(lambda b, x: x, _probabilist_step, degrees=_HERMITE_DEGREES),
    "laguerre_polynomial_l": _Family(lambda b, x: b.Sub(1, x), _laguerre_step),
    "legendre_polynomial_p": _Family(lambda b, x: x, _legendre_step),
}


for _name, _family in _FAMILIES.items():
    _overloads = (f"aten::special_{_name}{suffix}" for suffix in ("", ".x_scalar", ".n_scalar"))
    lowering(*_overloads, family=_family)(evaluate)
