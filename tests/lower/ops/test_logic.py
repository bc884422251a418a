"""Logical, bitwise and shift operators against eager PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.ops.harness import CAPTURES, check

MASK = torch.tensor([True, False, True, False])
OTHER = torch.tensor([True, True, False, False])
INTS = torch.tensor([0, 5, -3, 127])
MORE = torch.tensor([1, 3, 0, -1])
AMOUNTS = torch.tensor([0, 1, 3, 6])

CASES: list[tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]]] = [
    ("logical", lambda x, y: (x.logical_and(y), x.logical_or(y), x.logical_xor(y)), (INTS, OTHER)),
    ("logical_floats", torch.logical_and, (torch.tensor([0.0, 0.5, math.nan]), torch.ones(3))),
    ("logical_not", lambda x, y: (torch.logical_not(x), torch.logical_not(y)), (INTS, MASK)),
    ("logical_not_floats", torch.logical_not, (torch.tensor([0.0, 0.5, -0.0, math.nan]),)),
    ("bools", lambda x, y: (x & y, x | y, x ^ y, ~x), (MASK, OTHER)),
    ("ints", lambda x, y: (x & y, x | y, x ^ y, ~x), (INTS, MORE)),
    ("scalars", lambda x: (x & 6, x | 1, x ^ -1), (INTS,)),
    ("bool_and_int", lambda x, y: (x & y, x | y), (MASK, INTS)),
    ("bool_and_scalar", lambda x: (x & True, x ^ True, x | 2), (MASK,)),
    ("scalar_tensor", lambda x: torch.bitwise_and(6, x), (INTS,)),
    ("left", lambda x, y: x << y, (INTS, AMOUNTS)),
    ("right", lambda x, y: x >> y, (INTS, AMOUNTS)),
    ("by_scalar", lambda x: (x << 2, x >> 1), (INTS,)),
    ("beyond_the_width", lambda x: (x << 64, x >> 70), (INTS,)),
    ("scalar_shifted", lambda x: torch.bitwise_left_shift(3, x), (AMOUNTS,)),
    ("named", torch.bitwise_right_shift, (INTS, AMOUNTS)),
    ("dunder", lambda x: (x.__and__(3), x.__or__(8), x.__xor__(1)), (INTS,)),
]


NOT_FOR_THE_TRACER = {"bool_and_scalar"}
"""torch.jit.trace itself fails on these."""


@pytest.mark.parametrize("name, function, args", CASES, ids=[c[0] for c in CASES])
def test_agrees_with_eager(
    name: str, function: Callable[..., Any], args: tuple[torch.Tensor, ...]
) -> None:
    check(function, *args, captures=("export",) if name in NOT_FOR_THE_TRACER else CAPTURES)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32], ids=str)
def test_narrow_integers(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 5, 100, 127]).to(dtype)
    if dtype.is_signed:
        x = x - 60
    amounts = AMOUNTS.to(dtype)
    check(lambda x, y: (x & y, x | 3, ~x, x ^ y, x << y, x >> y), x, amounts)
    check(lambda x: (x << 7, x >> 7, x << 9, x >> 20), x)
