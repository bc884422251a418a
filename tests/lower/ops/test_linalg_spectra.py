"""Singular values, eigenvalues and what is made of them, against eager PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check
from tests.lower.ops.test_linalg_factorizations import positive, rand

SHAPES = [(3, 3), (5, 2), (2, 4), (2, 1, 3, 4), (1, 1), (0, 3, 3), (3, 0), (9, 8)]


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values(shape: tuple[int, ...]) -> None:
    check(torch.linalg.svdvals, rand(*shape), captures=("trace",), opsets=(20,))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_vectors(shape: tuple[int, ...], full: bool) -> None:
    def invariants(x: torch.Tensor) -> Any:
        u, values, vh = torch.linalg.svd(x, full_matrices=full)
        k = values.shape[-1]
        product = u[..., :k] * values.unsqueeze(-2) @ vh[..., :k, :]
        return product, u.mT @ u, vh @ vh.mT, values

    check(invariants, rand(*shape), captures=("trace",), opsets=(20,), atol=1e-5)


def test_vectors_of_a_matrix_below_full_rank() -> None:
    def invariants(x: torch.Tensor) -> Any:
        u, values, vh = torch.linalg.svd(x)
        return u.mT @ u, vh @ vh.mT, u * values @ vh

    for x in (torch.ones(4, 4), torch.zeros(3, 3)):
        check(invariants, x, atol=1e-5, captures=("trace",))


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 5), (1, 1), (0, 0), (0, 2, 2)])
def test_symmetric_eigenvalues(shape: tuple[int, ...], uplo: str) -> None:
    def invariants(x: torch.Tensor) -> Any:
        values, vectors = torch.linalg.eigh(x, UPLO=uplo)
        product = vectors * values.unsqueeze(-2) @ vectors.mT
        return product, vectors.mT @ vectors, values, torch.linalg.eigvalsh(x, UPLO=uplo)

    check(invariants, rand(*shape), captures=("trace",), opsets=(20,), atol=1e-5)


def test_eigenvalues_of_opposite_sign() -> None:
    check(torch.linalg.eigvalsh, torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    check(torch.linalg.eigvalsh, torch.diag(torch.tensor([3.0, -3.0, 0.0, 1.0])), atol=1e-5)


def test_spectra_in_float64_and_of_large_and_small_numbers() -> None:
    check(torch.linalg.svdvals, rand(5, 4, dtype=torch.float64))
    check(torch.linalg.svdvals, rand(3, 3) * 1e25, captures=("trace",))
    check(torch.linalg.svdvals, rand(3, 3) * 1e-25, captures=("trace",), atol=1e-31)


def test_spectra_at_another_size() -> None:
    def spectra(x: torch.Tensor) -> Any:
        return torch.linalg.svdvals(x @ x.mT), torch.linalg.pinv(x), torch.linalg.eigvalsh(x @ x.mT)

    check(spectra, rand(2, 4, 3), dynamic={0: [0, 1]},
          others=[(rand(3, 7, 3),), (rand(1, 5, 3),)], atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 2, 4), (0, 3)])
def test_pseudo_inverse(shape: tuple[int, ...]) -> None:
    check(torch.linalg.pinv, rand(*shape), atol=1e-5, rtol=1e-3)


def test_pseudo_inverse_with_tolerances() -> None:
    x = torch.diag(torch.tensor([4.0, 1.0, 0.01]))
    check(lambda x: torch.linalg.pinv(x, atol=0.1), x)
    check(lambda x: torch.linalg.pinv(x, rtol=0.5), x)
    check(lambda x: torch.linalg.pinv(x, atol=0.1, rtol=0.5), x)
    check(lambda x: torch.linalg.pinv(x, hermitian=True), x - 2 * torch.eye(3))
    check(torch.linalg.pinv, rand(4, 2) @ rand(2, 5), atol=1e-5, rtol=1e-3)


def test_rank() -> None:
    x = torch.stack([rand(4, 2) @ rand(2, 4), torch.eye(4), torch.zeros(4, 4)])
    check(lambda x: (torch.linalg.matrix_rank(x), torch.linalg.matrix_rank(x, atol=2.0)), x)
    check(lambda x: torch.linalg.matrix_rank(x @ x.mT, hermitian=True, rtol=1e-4), x)


@pytest.mark.parametrize("order", [None, 2, -2, "nuc", "fro", 1, -1, float("inf")])
def test_condition(order: Any) -> None:
    check(lambda x: torch.linalg.cond(x, order), rand(2, 3, 3), rtol=1e-3)


@pytest.mark.parametrize("order", [2, -2, "nuc"])
def test_spectral_norms(order: Any) -> None:
    check(lambda x: torch.linalg.matrix_norm(x, order), rand(2, 3, 4))
    check(lambda x: torch.linalg.matrix_norm(x, order, dim=(2, 0), keepdim=True), rand(3, 2, 4))
    check(lambda x: torch.linalg.norm(x, order, dim=(0, 1)), rand(3, 4))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 2, 2)])
def test_exponential(shape: tuple[int, ...]) -> None:
    check(torch.matrix_exp, rand(*shape) * 4, rtol=1e-3)
    check(torch.matrix_exp, rand(*shape) * 0.1)


def test_exponential_at_another_size() -> None:
    check(torch.matrix_exp, rand(2, 3, 3), dynamic={0: [0, 1, 2]}, others=[(rand(4, 5, 5),)],
          captures=("trace",), rtol=1e-3)  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.linalg.eigvalsh(x, UPLO="U"),
        lambda x: torch.linalg.eigvalsh(x, UPLO="L"),
        lambda x: torch.linalg.matrix_rank(x, hermitian=True),
        lambda x: torch.linalg.pinv(x, hermitian=True),
    ],
)
def test_batches_of_symmetric_matrices_of_any_size(function: Any) -> None:
    example, *others = ((positive(batch, n, n),) for n, batch in ((3, 2), (4, 3), (1, 1)))
    check(function, *example, dynamic={0: (0, 1, 2)}, others=others, captures=("trace",),
          opsets=(20,), rtol=1e-2, atol=1e-3)  # fmt: skip
