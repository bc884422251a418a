"""frexp and nextafter against eager PyTorch, denormal numbers among their arguments."""

from __future__ import annotations

import math

import pytest
import torch

from tests.lower.ops.harness import check

NUMBERS = [0.0, -0.0, 1.0, 2.0, 0.5, -3.0, 7.1, 1024.0, 1e4, 0.1, math.inf, -math.inf, math.nan]
EXTREMES = {
    torch.float32: [1e-40, -1e-45, 1.17549435e-38, 3.4028234e38, 1e-38],
    torch.float64: [5e-324, 2.2250738585072014e-308, 1.7e308, -1e-310],
    torch.bfloat16: [1e-40, 1.17549435e-38, 3e38],
}


@pytest.mark.parametrize("dtype", EXTREMES)
def test_frexp(dtype: torch.dtype) -> None:
    check(torch.frexp, torch.tensor(NUMBERS + EXTREMES[dtype], dtype=dtype), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", EXTREMES)
def test_nextafter(dtype: torch.dtype) -> None:
    values = torch.tensor(NUMBERS + EXTREMES[dtype], dtype=dtype)
    x, y = (t.flatten() for t in torch.meshgrid(values, values, indexing="ij"))
    check(torch.nextafter, x, y, opsets=(20,), rtol=0, atol=0)


def test_dynamic_shapes() -> None:
    check(
        lambda x: (torch.frexp(x), torch.nextafter(x, x + 1)),
        torch.randn(2, 3),
        dynamic={0: [0, 1]},
        others=[(torch.randn(4, 0),), (torch.randn(1, 5),)],
    )
