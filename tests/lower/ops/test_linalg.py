"""Linear algebra beyond products, against eager PyTorch."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check

GENERATOR = torch.Generator().manual_seed(0)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (4, 2)])
def test_trace(shape: tuple[int, int]) -> None:
    check(torch.trace, rand(*shape))
    check(torch.trace, torch.randint(0, 9, shape, dtype=torch.int32))


def test_trace_of_dynamic_sizes() -> None:
    others = [(rand(*sizes),) for sizes in ((2, 5), (5, 2), (3, 3), (0, 3), (1, 0))]
    check(torch.trace, rand(3, 4), dynamic={0: [0, 1]}, others=others)


def test_trace_of_a_dynamic_square() -> None:
    check(lambda x: torch.trace(x @ x.T), rand(3, 2), dynamic={0: [0]}, others=[(rand(6, 2),)],
          captures=("export",))  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "dim"),
    [((3,), (3,), 0), ((2, 3), (2, 3), -1), ((3, 4), (3, 4), 0), ((5, 1, 3), (1, 4, 3), -1)],
)
def test_cross(left: tuple[int, ...], right: tuple[int, ...], dim: int) -> None:
    check(lambda x, y: torch.linalg.cross(x, y, dim=dim), rand(*left), rand(*right))


@pytest.mark.filterwarnings("ignore:Using torch.cross")
def test_cross_along_the_first_dim_of_three() -> None:
    check(lambda x, y: torch.cross(x, y), rand(2, 3, 4), rand(2, 3, 4))
    check(lambda x, y: torch.cross(x, y, dim=1), rand(2, 3, 3), rand(2, 3, 3))


def test_cross_of_integers_at_another_size() -> None:
    x, other = torch.randint(-5, 5, (2, 3)), torch.randint(-5, 5, (7, 3))
    check(lambda x: torch.linalg.cross(x, x.flip(1)), x, dynamic={0: [0]}, others=[(other,)])


@pytest.mark.parametrize("p", [1, 2])
def test_renorm(p: int) -> None:
    check(lambda x: torch.renorm(x, p=p, dim=0, maxnorm=1.5), rand(3, 4))
