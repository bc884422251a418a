"""Polynomials, rational functions and Chebyshev series of a tensor, with known coefficients.

`special_functions.json` has the coefficients of special functions, by name: a list for a Chebyshev
series, numerator and denominator for a rational function. Those of the Bessel and Airy functions
and of the normal distribution's quantiles are of the Cephes library, as in ATen.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import cast

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.values import Tensor


@cache
def _tables() -> dict[str, object]:
    path = Path(__file__).with_name("special_functions.json")
    return cast("dict[str, object]", json.loads(path.read_text()))


def polynomial(b: Builder, x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """By Horner's rule; the coefficient of the highest power comes first."""
    leading, *others = coefficients
    if not others:
        return b.full_like(x, leading)
    result = x if leading == 1 else b.Mul(x, leading)
    for coefficient in others[:-1]:
        result = b.Mul(b.Add(result, coefficient), x)
    return b.Add(result, others[-1])


def rational(b: Builder, x: Tensor, table: str) -> Tensor:
    """A quotient of polynomials."""
    parts = cast("dict[str, list[float]]", _tables()[table])
    return b.Div(*(polynomial(b, x, parts[part]) for part in ("numerator", "denominator")))


def chebyshev(b: Builder, x: Tensor, table: str) -> Tensor:
    """c0 / 2 + c1 T1(x) + c2 T2(x) + ... for x in [-1, 1], by Clenshaw's recurrence.

    Coefficients that the dtype of `x` cannot tell from zero are left out.
    """
    coefficients = cast("list[float]", _tables()[table])
    smallest = max(map(abs, coefficients)) * torch.finfo(x.dtype).eps / 16
    count = max(k for k, c in enumerate(coefficients) if abs(c) > smallest) + 1
    first, *others = coefficients[:count]
    twice = b.Mul(x, 2)
    before = b.scalar(others[-1], x.dtype)
    last = b.Add(b.Mul(twice, before), others[-2])
    for coefficient in reversed(others[:-2]):
        last, before = b.Add(b.Sub(b.Mul(twice, last), before), coefficient), last
    return b.Add(b.Sub(b.Mul(x, last), before), first / 2)
