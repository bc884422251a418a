"""Quantiles against eager PyTorch."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check

torch.manual_seed(0)
X = torch.randn(3, 5)
WITH_NAN = X.masked_fill(torch.rand(3, 5) > 0.6, float("nan"))
Q = torch.tensor([0.0, 0.3, 0.5, 1.0])
FUNCTIONS = {"quantile": torch.quantile, "nanquantile": torch.nanquantile}


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_interpolation(name: str, interpolation: str) -> None:
    function = FUNCTIONS[name]

    def model(x: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            function(x, q, dim=1, interpolation=interpolation),
            function(x, 0.35, dim=0, keepdim=True, interpolation=interpolation),
        )

    others = [(WITH_NAN, Q), (torch.randn(4, 7), Q)]
    check(model, X, Q, dynamic={0: [0, 1]}, others=others)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_places(name: str) -> None:
    """All elements, one fraction or several, dims kept or not, and a scalar."""
    function = FUNCTIONS[name]

    def model(x: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            function(x, q),
            function(x, 0.4),
            function(x, q, keepdim=True),
            function(x, q[1], dim=-1, keepdim=True),
            function(x, q, dim=0, keepdim=True),
            function(x[0, 0], q, dim=0),
            function(x[0, 0], 0.5),
        )

    check(model, X.double(), Q.double(), others=[(X.double() * float("inf"), Q.double())])


def test_a_row_without_numbers_has_no_quantile() -> None:
    check(lambda x: torch.nanquantile(x, 0.5, dim=1), torch.full((2, 3), float("nan")))
