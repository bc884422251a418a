"""Covariance and correlation, against eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.lower.ops.harness import check
from tests.lower.ops.test_linalg_factorizations import rand


@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (6,)])
def test_covariance(shape: tuple[int, ...]) -> None:
    check(torch.cov, rand(*shape))
    check(torch.corrcoef, rand(*shape))
    check(torch.cov, torch.randint(-5, 5, shape))


def test_covariance_with_weights() -> None:
    counts, w = torch.tensor([1, 2, 3, 1]), torch.tensor([0.1, 0.9, 0.4, 0.6])
    for correction in (0, 1, 2):
        check(lambda x, c=correction: torch.cov(x, correction=c, fweights=counts), rand(3, 4))
        check(lambda x, w, c=correction: torch.cov(x, correction=c, aweights=w), rand(3, 4), w)
    check(lambda x, w: torch.cov(x, fweights=counts, aweights=w), rand(3, 4), w)


@pytest.mark.filterwarnings("ignore:cov")
def test_covariance_without_degrees_of_freedom() -> None:
    check(lambda x: torch.cov(x, correction=4), rand(2, 4))


def test_correlation_of_a_variable_that_does_not_vary() -> None:
    check(torch.corrcoef, torch.stack([torch.ones(4), torch.arange(4.0)]))


def test_correlation_at_another_size() -> None:
    check(torch.corrcoef, rand(3, 5), dynamic={0: [0, 1]}, others=[(rand(4, 7),)])


@pytest.mark.parametrize("function", [torch.cov, torch.corrcoef])
def test_dynamic_rows(function: Callable[..., torch.Tensor]) -> None:
    program = check(function, rand(3, 5), dynamic={0: [0]}, others=[(rand(4, 5),)])
    assert ["two rows or more" in note for note in program.notes] == [True]
    assert not check(function, rand(3, 5), dynamic={0: [1]}).notes
