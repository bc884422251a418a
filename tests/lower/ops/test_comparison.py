"""Comparisons against eager PyTorch, operands of every mix of dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check

FLOATS = torch.tensor([1.0, -2.5, math.nan, math.inf, 0.0, 3.0])
OTHERS = torch.tensor([1.0, 2.5, math.nan, math.inf, -0.0, 2.0])
INTS = torch.tensor([1, -2, 0, 7, 3, 3])
BYTES = torch.tensor([0, 1, 44, 255], dtype=torch.uint8)
MASK = torch.tensor([True, False, True, False])

PAIRS: dict[str, tuple[Any, Any]] = {
    "floats": (FLOATS, OTHERS),
    "ints": (INTS, INTS.flip(0)),
    "mixed": (INTS, FLOATS),
    "bools": (MASK, torch.tensor([True, True, False, False])),
    "bytes_and_ints": (BYTES, torch.tensor([0, -1, 300, 255])),
    "broadcast": (FLOATS[:, None], OTHERS[:3]),
    "rank_zero": (torch.tensor(2), torch.tensor(2.0)),
}
SCALARS: dict[str, tuple[torch.Tensor, Any]] = {
    "float": (FLOATS, 1.0),
    "int_by_float": (INTS, 0.5),
    "float_by_int": (FLOATS, 1),
    "bool_by_int": (MASK, 1),
    "byte_by_wrapped": (BYTES, 300),
    "byte_by_negative": (BYTES, -1),
}
NAMES = ("eq", "ne", "lt", "le", "gt", "ge")


@pytest.mark.parametrize("pair", PAIRS)
def test_tensors(pair: str) -> None:
    check(lambda x, y: tuple(getattr(torch, name)(x, y) for name in NAMES), *PAIRS[pair])


@pytest.mark.parametrize("pair", SCALARS)
def test_scalars(pair: str) -> None:
    x, number = SCALARS[pair]
    check(lambda x: tuple(getattr(torch, name)(x, number) for name in NAMES), x)


def test_aliases() -> None:
    names = ("less", "less_equal", "greater", "greater_equal", "not_equal")
    check(lambda x, y: tuple(getattr(torch, name)(x, y) for name in names), FLOATS, OTHERS)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int32, torch.int16], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    check(lambda x, y: (x < y, x == y, x >= 1), INTS.to(dtype), INTS.flip(0).to(dtype))


CASES: list[tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]]] = [
    ("isclose", torch.isclose, (FLOATS, OTHERS)),
    ("isclose_nan", lambda x, y: torch.isclose(x, y, equal_nan=True), (FLOATS, OTHERS)),
    ("isclose_loose", lambda x, y: torch.isclose(x, y, rtol=0.5, atol=0.1), (FLOATS, OTHERS)),
    ("isclose_infinite", torch.isclose, (torch.tensor([1.0]), torch.tensor([math.inf]))),
    ("isclose_ints", lambda x, y: torch.isclose(x, y, rtol=0, atol=1), (INTS, INTS.flip(0))),
    ("isin", torch.isin, (INTS.reshape(2, 3), torch.tensor([3, -2]))),
    ("isin_invert", lambda x, y: torch.isin(x, y, invert=True), (INTS, torch.tensor([[3], [7]]))),
    ("isin_none", torch.isin, (INTS, torch.zeros(0, dtype=torch.int64))),
    ("isin_scalar", lambda x: torch.isin(x, 3), (INTS,)),
    ("isin_scalar_tensor", lambda x: torch.isin(3, x), (INTS,)),
    ("isin_floats", torch.isin, (FLOATS, OTHERS)),
]


@pytest.mark.parametrize("function, args", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_agrees_with_eager(function: Callable[..., Any], args: tuple[torch.Tensor, ...]) -> None:
    check(function, *args)


def test_dynamic_sizes() -> None:
    check(
        lambda x, y: (x > y, x < x.shape[0]),
        torch.randn(4, 3),
        torch.randn(3),
        dynamic={0: [0]},
        others=[(torch.randn(1, 3), torch.randn(3))],
    )
