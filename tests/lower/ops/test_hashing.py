"""Hashes of tensors against eager PyTorch."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check

CASES = {
    "all": lambda x: torch.hash_tensor(x),
    "dim": lambda x: torch.hash_tensor(x, 1),
    "dims_kept": lambda x: torch.hash_tensor(x, (0, -1), keepdim=True),
    "scalar": lambda x: torch.hash_tensor(x[0, 0, 0]),
}
DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int8, torch.bool)


@pytest.mark.parametrize("name", CASES)
def test_hash(name: str) -> None:
    for dtype in DTYPES:
        x = (torch.randn(3, 2, 5) * 100).to(dtype)
        check(CASES[name], x, others=[(x.flip(0),)], opsets=(18,))


def test_special_floats() -> None:
    values = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 5e-324, -1e-310, 2.0**-1022]
    values += [1.7e308, 2.0**1023, 1.0, 1 - 2**-53, 2 - 2**-52, 8.0, 1e-30, 2.0**-1021]
    x = torch.tensor(values, dtype=torch.float64).reshape(-1, 1)
    check(lambda x: torch.hash_tensor(x, 1), x, opsets=(18,))
