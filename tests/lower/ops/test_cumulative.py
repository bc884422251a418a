"""Running sums, products and extremes against eager PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check

X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
LARGER = torch.randn(5, 3, 6, generator=torch.Generator().manual_seed(1))
INTS = torch.tensor([[3, -1, 3, 3], [0, 7, 7, 2]])

CASES: dict[str, Callable[[torch.Tensor], Any]] = {
    "cumsum": lambda x: x.cumsum(1),
    "cumsum_last": lambda x: x.cumsum(-1),
    "cumsum_dtype": lambda x: x.cumsum(0, dtype=torch.float64),
    "cumprod": lambda x: x.cumprod(-1),
    "cumprod_dtype": lambda x: x.cumprod(0, dtype=torch.float64),
    "cummax": lambda x: torch.cummax(x, -1),
    "cummin": lambda x: torch.cummin(x, 0),
}
FLOATS: dict[str, Callable[[torch.Tensor], Any]] = {
    "logcumsumexp": lambda x: torch.logcumsumexp(x, -1),
    "logcumsumexp_first": lambda x: torch.logcumsumexp(x * 50, 0),
    "diff": lambda x: torch.diff(x),
    "diff_twice": lambda x: torch.diff(x, n=2, dim=-1),
    "diff_prepend": lambda x: torch.diff(x, dim=1, prepend=x[:, :1], append=x[:, :2]),
    "diff_of_no_order": lambda x: torch.diff(x, n=0, dim=1, append=x[:, :2]),
    "trapezoid": lambda x: torch.trapezoid(x, dx=0.5),
    "trapezoid_x": lambda x: torch.trapezoid(x, x.cumsum(-1), dim=-1),
    "cumulative_trapezoid": lambda x: torch.cumulative_trapezoid(x, dim=1),
}


@pytest.mark.parametrize("name", [*CASES, *FLOATS])
def test_floats_at_another_size(name: str) -> None:
    check({**CASES, **FLOATS}[name], X, dynamic={0: [0, 2]}, others=[(LARGER,)])


@pytest.mark.parametrize("name", list(CASES))
def test_integers_and_bools(name: str) -> None:
    function = CASES[name]
    check(lambda i, b: (function(i), function(b)), INTS, INTS > 2)


def test_half_precision() -> None:
    check(lambda x: (x.cumsum(1), x.cumprod(0), *x.cummax(1)), X[0].half())


def test_scalars() -> None:
    check(lambda x: (x.cumsum(0), x.cumprod(-1), x.cummax(0), x.logcumsumexp(0)), X[0, 0, 0])


def test_empty() -> None:
    check(lambda x: (x.cumprod(0), x.cummin(0), x.logcumsumexp(0), x.cumsum(0)), torch.zeros(0, 3))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
def test_dims_that_become_empty(name: str, dim: int) -> None:
    others = [(torch.randn(n, 2),) for n in (0, 1, 4)]
    function = getattr(torch, name)
    check(lambda x: function(x, dim), torch.randn(3, 2), dynamic={0: [0]}, others=others)


def test_nan_and_ties_in_running_extremes() -> None:
    rows = torch.tensor([1.0, 1.0, math.nan, 2.0, math.nan, 0.0])
    check(lambda x: (torch.cummax(x, 0), torch.cummin(x, 0)), rows)


def test_infinities_in_logcumsumexp() -> None:
    rows = torch.tensor([-math.inf, -math.inf, 0.0, -700.0, 80.0, math.inf, 1.0])
    check(lambda x: torch.logcumsumexp(x, 0), rows)
    check(lambda x: torch.logcumsumexp(x, 0), torch.tensor([-500.0, 0.0, 500.0]))
