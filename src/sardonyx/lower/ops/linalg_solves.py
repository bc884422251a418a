"""Systems of linear equations, and inverses."""

from __future__ import annotations

import math

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import conjugate
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.kernels.elimination import (
    first_zero,
    lu_factors,
    order_of,
    solve_by_lu,
    solve_triangular,
)
from sardonyx.lower.kernels.jacobi import singular_values
from sardonyx.lower.kernels.matrices import adjoint as adjoint_of
from sardonyx.lower.kernels.matrices import identity, transposed
from sardonyx.lower.kernels.symmetric_elimination import solve_by_ldl
from sardonyx.lower.ops.linalg_factorizations import from_lapack, lapack_pivots
from sardonyx.lower.ops.reduction import linalg_matrix_norm
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("aten::linalg_inv_ex")
def linalg_inv_ex(b: Builder, A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    lu = lu_factors(b, A)
    right = identity(b, A.dim(-1), A.dtype)
    return solve_by_lu(b, lu.packed, lu.order, right), first_zero(b, lu.packed)


@lowering("aten::_linalg_solve_ex")
def linalg_solve_ex(
    b: Builder, A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    lu = lu_factors(b, A)
    is_vector = B.rank == 1 or (A.rank - 1 == B.rank and b.dims(B) == b.dims(A)[:-1])
    right = b.unsqueeze(B, [-1]) if is_vector else B
    if left:
        x = solve_by_lu(b, lu.packed, lu.order, right)
    else:  # a vector on the left of a matrix is no column but for its shape
        flip = conjugate if is_vector else adjoint_of
        x = flip(b, solve_by_lu(b, lu.packed, lu.order, flip(b, right), of_adjoint=True))
    solution = b.squeeze(x, [-1]) if is_vector else x
    return solution, lu.packed, lapack_pivots(b, lu.pivots), first_zero(b, lu.packed)


@lowering("aten::linalg_lu_solve")
def linalg_lu_solve(
    b: Builder, LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    order = order_of(b, from_lapack(b, pivots), arange(b, LU.dim(-1)))
    if left:
        return solve_by_lu(b, LU, order, B, of_adjoint=adjoint)
    solved = solve_by_lu(b, LU, order, adjoint_of(b, B), of_adjoint=not adjoint)
    return adjoint_of(b, solved)


@lowering("aten::linalg_solve_triangular")
def linalg_solve_triangular(
    b: Builder,
    self: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Tensor:
    if left:
        return solve_triangular(b, self, B, upper=upper, unit=unitriangular)
    flipped = solve_triangular(
        b, transposed(b, self), transposed(b, B), upper=not upper, unit=unitriangular
    )
    return transposed(b, flipped)


@lowering("aten::triangular_solve")
def triangular_solve(
    b: Builder,
    self: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    a = transposed(b, A) if transpose else A
    solution = solve_triangular(b, a, self, upper=upper != transpose, unit=unitriangular)
    batch = b.dims(solution)[:-2]
    return solution, b.expand(A, [*batch, *b.dims(A)[-2:]])


@lowering("aten::cholesky_solve")
def cholesky_solve(b: Builder, self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    lower = adjoint_of(b, input2) if upper else input2
    x = solve_triangular(b, lower, self, upper=False)
    return solve_triangular(b, adjoint_of(b, lower), x, upper=True)


@lowering("aten::linalg_ldl_solve")
def linalg_ldl_solve(
    b: Builder, LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False
) -> Tensor:
    return solve_by_ldl(b, LD, b.cast(pivots, torch.int64), B)


@lowering("aten::linalg_cond", "aten::linalg_cond.p_str")
def linalg_cond(b: Builder, self: Tensor, p: float | str | None = None) -> Tensor:
    if p is None or p in (2, -2):
        values = singular_values(b, self)
        largest = b.squeeze(b.slice(values, -1, 0, 1), [-1])
        smallest = b.squeeze(b.slice(values, -1, -1, None), [-1])
        quotient = (smallest, largest) if p == -2 else (largest, smallest)
        return b.Div(*quotient)
    inverse, info = linalg_inv_ex(b, self)
    product = b.Mul(linalg_matrix_norm(b, self, p), linalg_matrix_norm(b, inverse, p))
    return b.Where(b.Greater(info, 0), math.inf, product)
