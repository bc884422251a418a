"""Factorizations of matrices, against eager PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check

GENERATOR = torch.Generator().manual_seed(0)


def rand(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR, dtype=torch.float64).to(dtype)


def positive(*shape: int) -> torch.Tensor:
    x = rand(*shape)
    return x @ x.mT + torch.eye(shape[-1])


SHAPES = [(3, 3), (5, 2), (2, 4), (2, 1, 3, 4), (1, 1), (0, 0), (0, 3, 3), (3, 0)]


@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape: tuple[int, ...]) -> None:
    def factors(x: torch.Tensor) -> Any:
        lu, pivots = torch.linalg.lu_factor(x)
        return (
            *torch.linalg.lu(x),
            *torch.lu_unpack(lu, pivots),
            *torch.linalg.lu_factor_ex(x),
        )

    check(factors, rand(*shape))


def test_lu_of_a_singular_matrix() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 7.0], [3.0, 6.0, 9.0]])
    check(lambda x: torch.linalg.lu_factor_ex(x), torch.stack([torch.zeros(3, 3), x, x.mT]))


def test_lu_in_float64() -> None:
    check(lambda x: torch.linalg.lu(x), rand(4, 4, dtype=torch.float64))
    check(lambda x: torch.linalg.det(x), rand(2, 4, 4, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 2, 2)])
def test_determinants(shape: tuple[int, ...]) -> None:
    def determinants(x: torch.Tensor) -> Any:
        return torch.det(x), *torch.linalg.slogdet(x), torch.logdet(x @ x.mT + 1)

    check(determinants, rand(*shape))


def test_determinants_of_a_singular_matrix() -> None:
    check(lambda x: (torch.det(x), *torch.slogdet(x)), torch.ones(3, 3))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (2, 1, 3, 3), (1, 1), (0, 0)])
def test_cholesky(shape: tuple[int, ...], upper: bool) -> None:
    def factors(x: torch.Tensor) -> Any:
        factor = torch.linalg.cholesky(x, upper=upper)
        return (
            factor,
            *torch.linalg.cholesky_ex(x, upper=upper),
            torch.cholesky_inverse(factor, upper=upper),
        )

    check(factors, positive(*shape))


def test_cholesky_tells_where_it_fails() -> None:
    x = torch.stack([torch.diag(torch.tensor([1.0, -2.0, 3.0])), torch.eye(3)])
    check(lambda x: torch.linalg.cholesky_ex(x).info, x)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape: tuple[int, ...], mode: str) -> None:
    check(lambda x: torch.linalg.qr(x, mode=mode), rand(*shape), captures=("trace",), opsets=(20,))


def test_reflections() -> None:
    def products(x: torch.Tensor, y: torch.Tensor) -> Any:
        packed, tau = torch.geqrf(x)
        return (
            packed,
            torch.linalg.householder_product(packed, tau),
            torch.ormqr(packed, tau, y),
            torch.ormqr(packed, tau, y, transpose=True),
            torch.ormqr(packed, tau, y.mT, left=False),
            torch.ormqr(packed, tau, y.mT, left=False, transpose=True),
        )

    check(products, rand(2, 5, 3), rand(2, 5, 4))


def test_factors_at_another_size() -> None:
    def factors(x: torch.Tensor) -> Any:
        square = x @ x.mT + torch.eye(x.shape[-2])
        return (
            torch.linalg.qr(x).R,
            torch.linalg.lu(x).U,
            torch.linalg.cholesky(square),
            torch.linalg.det(square),
        )

    check(factors, rand(2, 3, 5), dynamic={0: [0, 1]}, others=[(rand(3, 4, 5),)])
