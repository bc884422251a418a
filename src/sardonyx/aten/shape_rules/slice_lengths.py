"""Which short form the length of a slice has, whatever the size of its dim is.

A bound that is computed from a size may lie before or behind the dim for some sizes: x[:n - 1] is
x[:-1] where x is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import gcd, lcm
from typing import Any, NamedTuple

import sympy

Form = Callable[[Any, Any, Any, Callable[..., Any], Callable[..., Any]], Any]
"""A length of the size, the two bounds, and the functions for the larger and the smaller of two."""


def fitting(size: Any, first: Any, last: Any, larger: Any, smaller: Any) -> Any:
    """Both bounds lie in the dim, the first one not behind the last."""
    return last - first


_FORMS: tuple[Form, ...] = (
    fitting,
    lambda size, first, last, larger, smaller: size,
    lambda size, first, last, larger, smaller: larger(0, last - first),
    lambda size, first, last, larger, smaller: smaller(size, last - first),
    lambda size, first, last, larger, smaller: larger(0, smaller(size, last) - first),
)
_MOST_TRIED = 600


@cache
def form_of_length(size: Any, start: Any, end: Any) -> Form | None:
    """The first form that is right for every size from 0 on; None where that cannot be told."""
    if len(size.free_symbols) != 1:
        first, last = counted_from_front(size, start, end)
        if all(sympy.expand(d).is_nonnegative for d in (first, last - first, size - last)):
            return fitting
        whole = sympy.Dummy("size", integer=True, nonnegative=True)
        start, end = (b.xreplace({size: whole}) if _is_open(b) else b for b in (start, end))
        size = whole
    (symbol,) = size.free_symbols
    bounds = 0 if start is None else start, size if end is None else end
    readings = [
        _reading(sympy.sympify(place), symbol)
        for place in (size, *bounds, *counted_from_front(size, start, end))
    ]
    known = [r for r in readings if r is not None]
    if len(known) < len(readings):
        return None
    # Behind the last place where two of them cross, all goes on as it does in one period.
    crossed = 2 * sum(r.spread for r in known) * lcm(*(r.scale for r in known))
    most = crossed + 2 * lcm(*(r.period for r in known))
    if most > _MOST_TRIED:
        return None
    forms = list(_FORMS)
    for tried in range(most + 1):
        count, begin, stop, first, last = (r.value(tried) for r in known)
        exact = len(range(count)[begin:stop])
        forms = [form for form in forms if form(count, first, last, max, min) == exact]
    return next(iter(forms), None)


def counted_from_front(size: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """The bounds, of which a negative number counts from the end."""
    first, last = 0 if start is None else start, size if end is None else end
    if isinstance(first, int) and first < 0:
        first = first + size
    if isinstance(last, int) and last < 0:
        last = last + size
    return first, last


class _Reading(NamedTuple):
    """An integer expression that is linear in one size but for quotients and remainders."""

    value: Callable[[int], int]
    slope: Fraction
    """How it grows with large sizes."""
    scale: int
    """A multiple of the denominators of all slopes in it."""
    spread: int
    """The most that it lies away from such a multiple of the size."""
    period: int
    """By how much a large size grows until the expression goes on as before."""


def _is_open(bound: Any) -> bool:
    return isinstance(bound, sympy.Expr) and not bound.is_number


def _reading(expression: Any, symbol: Any) -> _Reading | None:
    if expression == symbol:
        return _Reading(lambda size: size, Fraction(1), 1, 0, 1)
    if expression.is_Integer:
        number = int(expression)
        return _Reading(lambda size: number, Fraction(0), 1, abs(number), 1)
    found = [_reading(a, symbol) for a in expression.args]
    parts = [p for p in found if p is not None]
    kind = type(expression).__name__
    if not parts or len(parts) < len(found):
        return None
    if kind in _JOINS:
        join = _JOINS[kind]
        return _Reading(
            lambda size: join(p.value(size) for p in parts),
            Fraction(join(p.slope for p in parts)),
            lcm(*(p.scale for p in parts)),
            sum(p.spread for p in parts),
            lcm(*(p.period for p in parts)),
        )
    if len(parts) != 2:
        return None
    if kind == "Mul":
        return _multiple(expression.args[0], parts[1])
    return _divided(kind, parts[0], expression.args[1])


_JOINS: dict[str, Callable[..., Any]] = {"Add": sum, "Max": max, "Min": min}


def _multiple(factor: Any, part: _Reading) -> _Reading | None:
    if not factor.is_Integer:
        return None
    number = int(factor)
    return part._replace(
        value=lambda size: number * part.value(size),
        slope=number * part.slope,
        spread=abs(number) * part.spread,
    )


def _divided(kind: str, part: _Reading, divisor: Any) -> _Reading | None:
    if not (divisor.is_Integer and divisor > 0):
        return None
    number = int(divisor)
    period = part.period * number // gcd(int(part.slope * part.period), number)
    if kind in ("Mod", "PythonMod"):
        return _Reading(
            lambda size: part.value(size) % number, Fraction(0), part.scale, number, period
        )
    if kind not in ("FloorDiv", "CleanDiv"):
        return None
    return _Reading(
        lambda size: part.value(size) // number,
        part.slope / number,
        part.scale * number,
        part.spread // number + 2,
        period,
    )
