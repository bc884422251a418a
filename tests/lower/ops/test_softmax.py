"""Softmax and its logarithm against eager PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check

X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))

CASES: dict[str, Callable[[torch.Tensor], Any]] = {
    "softmax": lambda x: x.softmax(-1),
    "softmax_first": lambda x: x.softmax(0),
    "softmax_middle": lambda x: x.softmax(-2),
    "softmax_dtype": lambda x: x.softmax(1, dtype=torch.float64),
    "log_softmax": lambda x: x.log_softmax(-1),
    "log_softmax_dtype": lambda x: torch.log_softmax(x * 100, 1, dtype=torch.float64),
    "special_softmax": lambda x: torch.special.softmax(x, 1),
    "special_log_softmax": lambda x: torch.special.log_softmax(x, 1, dtype=torch.float64),
    "core_softmax": lambda x: torch.ops.aten._softmax(x, 1, False),
    "core_log_softmax": lambda x: torch.ops.aten._log_softmax(x, -1, False),
    "softmin": lambda x: torch.nn.functional.softmin(x, dim=1),
    "safe_softmax": lambda x: torch.ops.aten._safe_softmax(x, -1),
    "module_2d": lambda x: torch.nn.functional.softmax(x, dim=1),
}


@pytest.mark.parametrize("name", list(CASES))
def test_at_another_size(name: str) -> None:
    check(CASES[name], X, dynamic={0: [0, 2]}, others=[(torch.randn(5, 3, 6),)])


def test_integers_with_a_dtype() -> None:
    check(lambda x: x.softmax(0, dtype=torch.float32), torch.tensor([[1, 2], [3, 4]]))


def test_half_precision() -> None:
    check(lambda x: (x.softmax(-1), x.log_softmax(1), x.softmax(0, dtype=torch.float32)), X.half())


def test_scalars() -> None:
    check(lambda x: (x.softmax(0), x.log_softmax(-1)), torch.tensor(3.0))


def test_masked_rows() -> None:
    rows = torch.tensor([[-math.inf, -math.inf], [0.0, -math.inf]])
    check(lambda x: (torch.ops.aten._safe_softmax(x, 1), x.softmax(1)), rows)
