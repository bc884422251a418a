"""Functions of one number (and atan2's kin) against eager PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check

NAN, INF = math.nan, math.inf
REALS = torch.tensor([-30.0, -2.5, -1.5, -0.5, -0.0, 0.0, 1e-8, 0.25, 0.5, 1.0, 2.5, 30.0])
SPECIAL = torch.tensor([NAN, INF, -INF])
INTS = torch.tensor([-3, 0, 1, 2])
BOOLS = torch.tensor([True, False])

EVERYWHERE = [
    "exp",
    "exp2",
    "expm1",
    "sin",
    "cos",
    "tan",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "erf",
    "erfc",
    "sigmoid",
    "deg2rad",
    "rad2deg",
    "sinc",
    "floor",
    "ceil",
    "round",
    "trunc",
    "frac",
    "isnan",
    "isinf",
    "isfinite",
    "isposinf",
    "isneginf",
    "angle",
]
POSITIVE = ["log", "log2", "log10", "log1p", "sqrt", "rsqrt", "special.entr"]
UNIT = ["asin", "acos", "atanh", "logit"]


def function_named(name: str) -> Callable[..., Any]:
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found
    return function


@pytest.mark.parametrize("name", EVERYWHERE)
def test_everywhere(name: str) -> None:
    function = function_named(name)
    values = torch.cat([REALS, SPECIAL])
    if name in ("sin", "cos", "tan", "sinc", "frac"):
        values = REALS
    check(function, values)
    if name != "frac":  # PyTorch has it for floats only
        check(function, INTS)


@pytest.mark.parametrize("name", POSITIVE)
def test_of_positives(name: str) -> None:
    function = function_named(name)
    check(function, torch.cat([REALS, SPECIAL]))
    check(function, torch.tensor([1, 2, 9]))


@pytest.mark.parametrize("name", UNIT)
def test_on_the_unit_interval(name: str) -> None:
    function = function_named(name)
    check(function, torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0]))
    check(function, torch.tensor([0, 1]))


FLOAT16_EXCLUDED = {"sinh", "cosh", "exp2", "exp", "expm1"}


@pytest.mark.parametrize("name", [n for n in EVERYWHERE if n not in FLOAT16_EXCLUDED])
def test_float16(name: str) -> None:
    check(function_named(name), REALS[1:-1].half(), opsets=(20,), captures=("export",))


@pytest.mark.parametrize(
    "name", ["exp", "expm1", "log1p", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid"]
)
def test_float64(name: str) -> None:
    check(function_named(name), REALS[5:].double(), opsets=(20,), captures=("export",))


@pytest.mark.parametrize("name", ["exp", "sqrt", "sigmoid"])
def test_bools(name: str) -> None:
    check(function_named(name), BOOLS)


def test_small_arguments_keep_their_digits() -> None:
    tiny = torch.tensor([1e-9, -1e-9, 1e-5, -1e-5, 0.01, -0.01])
    check(lambda x: (torch.expm1(x), torch.log1p(x)), tiny, rtol=1e-6, atol=0)


def test_logarithms_of_exact_powers() -> None:
    twos, tens = 2.0 ** torch.arange(-126, 128), 10.0 ** torch.arange(-37, 38)
    check(lambda x, y: (torch.log2(x).floor(), torch.log10(y)), twos, tens, rtol=1e-6, atol=0)


CASES: list[tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]]] = [
    ("log1p_edges", torch.log1p, (torch.tensor([-1.0, -2.0, INF, NAN, 1e30, -0.5]),)),
    ("acosh", torch.acosh, (torch.tensor([1.0, 1.5, 9.0, 0.5]),)),
    ("logit_eps", lambda x: torch.logit(x, eps=0.1), (torch.tensor([0.0, 0.05, 0.5, 1.0]),)),
    ("round_2", lambda x: torch.round(x, decimals=2), (torch.tensor([1.2345, -0.565, 10.0]),)),
    ("round_-1", lambda x: torch.round(x, decimals=-1), (torch.tensor([14.0, 15.0, -26.0]),)),
    ("round_half", lambda x: torch.round(x, decimals=2), (torch.tensor([700.0, 1.234]).half(),)),
    ("round_ints", torch.round, (INTS,)),
    (
        "atan2",
        torch.atan2,
        (
            torch.tensor(
                [1.0, 1.0, -1.0, -1.0, 0.0, -0.0, 0.0, 0.0, -0.0, 1.0, -1.0, INF, INF, NAN]
            ),
            torch.tensor(
                [2.0, -2.0, 2.0, -2.0, 0.0, -1.0, -1.0, -0.0, 0.0, 0.0, 0.0, INF, -INF, 1.0]
            ),
        ),
    ),
    ("atan2_nan", torch.atan2, (torch.tensor([0.0, -0.0, NAN]), torch.tensor([NAN, NAN, 0.0]))),
    ("atan2_ints", torch.atan2, (torch.tensor([1, -1, 0]), torch.tensor([-1, -1, -2]))),
    (
        "logaddexp",
        torch.logaddexp,
        (
            torch.tensor([0.0, 100.0, -INF, INF, -INF, 1.0, NAN]),
            torch.tensor([0.0, -5.0, -INF, INF, 2.0, 1.5, 1.0]),
        ),
    ),
    (
        "logaddexp2",
        torch.logaddexp2,
        (torch.tensor([0.0, 9.0, -INF]), torch.tensor([1.0, 9, -INF])),
    ),
    ("logaddexp_f64", torch.logaddexp, (torch.randn(5).double(), torch.randn(5).double())),
    (
        "xlogy",
        torch.xlogy,
        (
            torch.tensor([0.0, 0.0, 2.0, 1.0, 0.0]),
            torch.tensor([0.0, NAN, 3.0, 0.0, -1.0]),
        ),
    ),
    (
        "xlogy_scalars",
        lambda x: (torch.xlogy(x, 2), torch.xlogy(3, x)),
        (torch.tensor([1.0, 2.0]),),
    ),
    ("xlogy_ints", torch.xlogy, (torch.tensor([0, 2]), torch.tensor([0, 3]))),
    ("xlog1py", torch.special.xlog1py, (torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 0.5]))),
    ("rank_zero", torch.exp, (torch.tensor(0.5),)),
    ("empty", torch.exp, (torch.zeros(0, 2),)),
]


@pytest.mark.parametrize("function, args", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_agrees_with_eager(function: Callable[..., Any], args: tuple[torch.Tensor, ...]) -> None:
    check(function, *args)


def test_dynamic_shapes() -> None:
    check(
        lambda x: (torch.atan2(x, x + 1), torch.isfinite(x), torch.log1p(x.abs())),
        torch.randn(2, 3),
        dynamic={0: [0, 1]},
        others=[(torch.randn(4, 5),)],
    )
