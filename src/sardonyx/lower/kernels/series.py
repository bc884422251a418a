"""Polynomials, rational functions and Chebyshev series of a tensor, with known coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.values import Tensor


class Rational(NamedTuple):
    """A quotient of polynomials; coefficients of the highest powers come first."""

    numerator: Sequence[float]
    denominator: Sequence[float]


def polynomial(b: Builder, x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """By Horner's rule; the coefficient of the highest power comes first."""
    leading, *others = coefficients
    if not others:
        return b.full_like(x, leading)
    result = x if leading == 1 else b.Mul(x, leading)
    for coefficient in others[:-1]:
        result = b.Mul(b.Add(result, coefficient), x)
    return b.Add(result, others[-1])


def rational(b: Builder, x: Tensor, quotient: Rational) -> Tensor:
    return b.Div(polynomial(b, x, quotient.numerator), polynomial(b, x, quotient.denominator))


def chebyshev(b: Builder, x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """c0 / 2 + c1 T1(x) + c2 T2(x) + ... for x in [-1, 1], by Clenshaw's recurrence.

    Coefficients that the dtype of `x` cannot tell from zero are left out.
    """
    smallest = max(map(abs, coefficients)) * torch.finfo(x.dtype).eps / 16
    count = max(k for k, c in enumerate(coefficients) if abs(c) > smallest) + 1
    first, *others = coefficients[:count]
    twice = b.Mul(x, 2)
    before = b.scalar(others[-1], x.dtype)
    last = b.Add(b.Mul(twice, before), others[-2])
    for coefficient in reversed(others[:-2]):
        last, before = b.Add(b.Sub(b.Mul(twice, last), before), coefficient), last
    return b.Add(b.Sub(b.Mul(x, last), before), first / 2)
