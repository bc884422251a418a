"""Distances and similarities against eager PyTorch."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

import sardonyx
from tests.lower.ops.harness import check

GENERATOR = torch.Generator().manual_seed(0)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cosine_similarity(dim: int) -> None:
    check(lambda x, y: F.cosine_similarity(x, y, dim=dim, eps=1e-6), rand(2, 3, 4), rand(2, 3, 4))


def test_cosine_similarity_broadcasts() -> None:
    check(lambda x, y: F.cosine_similarity(x, y, dim=-1), rand(5, 1, 4), rand(3, 4))
    check(lambda x, y: F.cosine_similarity(x, y, dim=1), rand(5, 4), rand(5, 1))


def test_cosine_similarity_of_zero_vectors() -> None:
    check(F.cosine_similarity, torch.zeros(2, 3), rand(2, 3))


def test_cosine_similarity_at_other_sizes() -> None:
    check(F.cosine_similarity, rand(2, 3), rand(2, 3), dynamic={0: [0, 1], 1: [0, 1]},
          others=[(rand(4, 6), rand(4, 6))])  # fmt: skip


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("keepdim", [True, False])
def test_pairwise_distance(p: float, keepdim: bool) -> None:
    check(lambda x, y: F.pairwise_distance(x, y, p=p, keepdim=keepdim), rand(4, 3), rand(4, 3))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 2.5, math.inf])
def test_cdist(p: float) -> None:
    check(lambda x, y: torch.cdist(x, y, p=p), rand(2, 4, 3), rand(2, 5, 3))


@pytest.mark.parametrize(
    "mode",
    [
        "use_mm_for_euclid_dist_if_necessary",
        "use_mm_for_euclid_dist",
        "donot_use_mm_for_euclid_dist",
    ],
)
def test_cdist_modes_and_broadcast(mode: str) -> None:
    check(lambda x, y: torch.cdist(x, y, compute_mode=mode), rand(2, 1, 30, 3), rand(3, 5, 3))


def test_cdist_at_other_sizes() -> None:
    check(torch.cdist, rand(2, 4, 3), rand(2, 5, 3), dynamic={0: [0, 1], 1: [0, 1]},
          others=[(rand(3, 30, 3), rand(3, 7, 3))])  # fmt: skip


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_pdist(p: float) -> None:
    check(lambda x: F.pdist(x, p), rand(5, 3))


def test_pdist_of_a_dynamic_number_of_rows_is_refused() -> None:
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="number of rows"):
        check(F.pdist, rand(5, 3), dynamic={0: [0]}, captures=("trace",))


def test_half_precision() -> None:
    check(F.cosine_similarity, rand(2, 3).half(), rand(2, 3).half())


def test_largest_difference_of_nothing() -> None:
    others = [(torch.randn(2, n), torch.randn(4, n)) for n in (0, 1, 5)]
    check(
        lambda x, y: torch.cdist(x, y, float("inf")),
        torch.randn(2, 3),
        torch.randn(4, 3),
        dynamic={0: [1], 1: [1]},
        others=others,
    )
