"""Systems of linear equations, against eager PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check
from tests.lower.ops.test_linalg_factorizations import positive, rand


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 3), (3, 2)),
        ((2, 3, 3), (2, 3)),
        ((2, 1, 3, 3), (4, 3, 2)),
        ((3, 3), (3,)),
        ((0, 0), (0, 2)),
        ((2, 2), (2, 0)),
    ],
)
def test_solve(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check(lambda a, y: torch.linalg.solve(a, y), rand(*left), rand(*right))


def test_solve_from_the_right() -> None:
    check(lambda a, y: torch.linalg.solve(a, y, left=False), rand(2, 3, 3), rand(2, 4, 3))


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_solve_by_factors(left: bool, adjoint: bool) -> None:
    def solve(a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        lu, pivots = torch.linalg.lu_factor(a)
        return torch.linalg.lu_solve(lu, pivots, y, left=left, adjoint=adjoint)

    check(solve, rand(2, 3, 3), rand(2, 3, 4) if left else rand(2, 4, 3))


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_triangular_systems(upper: bool, unit: bool) -> None:
    def solve(a: torch.Tensor, y: torch.Tensor) -> Any:
        return (
            torch.linalg.solve_triangular(a, y, upper=upper, unitriangular=unit),
            torch.linalg.solve_triangular(a, y.mT, upper=upper, left=False, unitriangular=unit),
            torch.triangular_solve(y, a, upper=upper, transpose=True, unitriangular=unit)[0],
            torch.triangular_solve(y, a, upper=upper, unitriangular=unit)[0],
        )

    check(solve, positive(3, 3), rand(2, 3, 4), captures=("trace",), opsets=(20,))


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_solve(upper: bool) -> None:
    factor = torch.linalg.cholesky(positive(2, 3, 3), upper=upper)
    check(lambda y, f: torch.cholesky_solve(y, f, upper), rand(2, 3, 4), factor)


@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 4, 4), (1, 1), (0, 0), (0, 2, 2)])
def test_inverses(shape: tuple[int, ...]) -> None:
    def inverses(x: torch.Tensor) -> Any:
        return torch.inverse(x), *torch.linalg.inv_ex(x), torch.linalg.matrix_power(x, -2)

    check(inverses, rand(*shape), rtol=1e-3, atol=1e-4)


def test_inverse_at_another_size() -> None:
    check(torch.linalg.inv, rand(2, 3, 3), dynamic={0: [0, 1, 2]}, others=[(rand(4, 5, 5),)],
          captures=("trace",), rtol=1e-3, atol=1e-4)  # fmt: skip


def test_info_of_a_singular_matrix() -> None:
    x = torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, 0.0, 2.0]))])
    check(lambda x: torch.linalg.inv_ex(x).info, x)


def test_tensor_systems() -> None:
    check(lambda x: torch.linalg.tensorinv(x, ind=1), rand(6, 2, 3))
    check(lambda a, y: torch.linalg.tensorsolve(a, y), rand(2, 3, 6), rand(2, 3))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (2, 3), (2, 5, 3)])
def test_least_squares(shape: tuple[int, ...], driver: str) -> None:
    right = rand(*shape[:-1], 2)
    check(lambda a, y: torch.linalg.lstsq(a, y, driver=driver), rand(*shape), right,
          captures=("trace",), opsets=(20,), rtol=1e-3, atol=1e-4)  # fmt: skip


def test_least_squares_below_full_rank() -> None:
    a = rand(5, 2) @ rand(2, 4)
    check(lambda a, y: torch.linalg.lstsq(a, y)[::2], a, rand(5), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(5, 5), (3, 4, 4), (1, 1), (0, 0), (0, 2, 2)])
def test_symmetric_systems(shape: tuple[int, ...]) -> None:
    def solve(a: torch.Tensor, y: torch.Tensor) -> Any:
        factors, pivots, info = torch.linalg.ldl_factor_ex(a)
        return factors, pivots, info, torch.linalg.ldl_solve(factors, pivots, y)

    # Neither definite nor with a large diagonal: blocks of two, and swaps.
    x = rand(*shape) * (1 - torch.eye(shape[-1]) * 0.9)
    check(solve, x + x.mT, rand(shape[-1], 2), rtol=1e-3, atol=1e-4)
    check(solve, x + x.mT, rand(*shape), rtol=1e-3, atol=1e-4, captures=("trace",))


def _ldl(n: int, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    factors = torch.linalg.ldl_factor(positive(batch, n, n) - 2 * torch.eye(n))
    return factors.LD, factors.pivots


def _lu(n: int, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(torch.linalg.lu_factor(positive(batch, n, n)))


@pytest.mark.parametrize(
    ("solve", "factors"),
    [
        (lambda f, y: torch.cholesky_solve(y, f, upper=True),
         lambda n, k: (torch.linalg.cholesky(positive(k, n, n)).mT.contiguous(),)),
        (lambda f, y: torch.cholesky_solve(y, f),
         lambda n, k: (torch.linalg.cholesky(positive(k, n, n)),)),
        (lambda a, y: torch.linalg.solve(a, y), lambda n, k: (positive(k, n, n),)),
        (lambda a, y: torch.linalg.solve(a, y.mT, left=False), lambda n, k: (positive(k, n, n),)),
        (lambda f, p, y: torch.linalg.ldl_solve(f, p, y), _ldl),
        (lambda f, p, y: torch.linalg.lu_solve(f, p, y), _lu),
    ],
)  # fmt: skip
def test_batches_of_systems_of_any_size(solve: Any, factors: Any) -> None:
    """Every size of every input is dynamic, and has a name of its own."""
    example, *others = (
        (*factors(n, batch), rand(batch, n, columns))
        for n, batch, columns in ((3, 2, 2), (4, 3, 1), (1, 1, 1))
    )
    every = {k: range(x.dim()) for k, x in enumerate(example)}
    check(solve, *example, dynamic=every, others=others, captures=("trace",), opsets=(20,),
          rtol=1e-2, atol=1e-3)  # fmt: skip


def test_a_right_side_that_other_sizes_make_vectors_is_noted() -> None:
    a, c = torch.randn(2, 3, 3), torch.randn(3, 4)
    others = [(torch.randn(1, 3, 3), torch.randn(3, 1)), (torch.randn(3, 2, 2), torch.randn(2, 3))]
    dynamic = {0: [0, 1, 2], 1: [0, 1]}
    program = check(torch.linalg.solve, a, c, dynamic=dynamic, others=others, rtol=1e-3, atol=1e-4)
    assert any("not one vector for each matrix" in note for note in program.notes)
    fixed = check(torch.linalg.solve, a, c, dynamic={0: [0]}, rtol=1e-3, atol=1e-4)
    assert not fixed.notes
