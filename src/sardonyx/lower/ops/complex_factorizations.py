"""LU and QR of complex matrices, and systems that are solved by their factors."""

from __future__ import annotations

from sardonyx.lower import complex_arithmetic as arithmetic
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_factors import adjoint_of, lu_factors, product, reflect, reflections
from sardonyx.lower.complex_values import ComplexTensor, of_real
from sardonyx.lower.elimination import first_zero, order_of, permutation
from sardonyx.lower.matrices import identity, on_diagonal, shorter, transposed
from sardonyx.lower.ops.complex_linalg import linalg_solve_triangular
from sardonyx.lower.ops.complex_reductions import prod
from sardonyx.lower.ops.linalg_factorizations import (
    from_lapack,
    lapack_pivots,
    parity,
    triangles,
    upper_rows,
)
from sardonyx.lower.positions import arange
from sardonyx.lower.reductions import reduce_dims
from sardonyx.lower.registry import complex_lowering
from sardonyx.lower.values import Dim, Tensor

# -- LU --------------------------------------------------------------------------------------------


@complex_lowering("aten::linalg_lu_factor_ex")
def linalg_lu_factor_ex(
    b: Builder, A: ComplexTensor, *, check_errors: bool = False
) -> tuple[ComplexTensor, Tensor, Tensor]:
    lu = lu_factors(b, A)
    sizes = b.Add(b.Abs(lu.packed.real), b.Abs(lu.packed.imag))
    return lu.packed, lapack_pivots(b, lu.pivots), first_zero(b, sizes)


@complex_lowering("aten::linalg_lu")
def linalg_lu(b: Builder, A: ComplexTensor) -> tuple[ComplexTensor, ComplexTensor, ComplexTensor]:
    lu = lu_factors(b, A)
    p = permutation(b, lu.order, A.real.dtype)
    return of_real(b, p), *_triangles(b, lu.packed)


@complex_lowering("aten::lu_unpack")
def lu_unpack(
    b: Builder,
    LU_data: ComplexTensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> tuple[ComplexTensor, ComplexTensor, ComplexTensor]:
    nothing = of_real(b, b.full([0], 0, LU_data.real.dtype))
    lower, upper = _triangles(b, LU_data) if unpack_data else (nothing, nothing)
    if not unpack_pivots:
        return nothing, lower, upper
    return of_real(b, _permutation(b, LU_data, LU_pivots)), lower, upper


def _triangles(b: Builder, packed: ComplexTensor) -> tuple[ComplexTensor, ComplexTensor]:
    lower, upper = triangles(b, packed.real)
    lower_imag, upper_imag = triangles(b, packed.imag, unit=False)
    return ComplexTensor(lower, lower_imag), ComplexTensor(upper, upper_imag)


def _permutation(b: Builder, packed: ComplexTensor, pivots: Tensor) -> Tensor:
    order = order_of(b, from_lapack(b, pivots), arange(b, packed.real.dim(-2)))
    return permutation(b, order, packed.real.dtype)


@complex_lowering("aten::_linalg_det")
def linalg_det(b: Builder, A: ComplexTensor) -> tuple[ComplexTensor, ComplexTensor, Tensor]:
    lu = lu_factors(b, A)
    determinant = prod(b, _diagonal(b, lu.packed), -1)
    signed = arithmetic.multiply(b, determinant, parity(b, lu.pivots, A.real.dtype))
    return signed, lu.packed, lapack_pivots(b, lu.pivots)


@complex_lowering("aten::_linalg_slogdet")
def linalg_slogdet(
    b: Builder, A: ComplexTensor
) -> tuple[ComplexTensor, Tensor, ComplexTensor, Tensor]:
    lu = lu_factors(b, A)
    diagonal = _diagonal(b, lu.packed)
    direction = prod(b, arithmetic.sign(b, diagonal), -1)
    signed = arithmetic.multiply(b, direction, parity(b, lu.pivots, A.real.dtype))
    size = reduce_dims(b, "ReduceSum", b.Log(arithmetic.magnitude(b, diagonal)), -1)
    return signed, size, lu.packed, lapack_pivots(b, lu.pivots)


def _diagonal(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(on_diagonal(b, z.real), on_diagonal(b, z.imag))


# -- systems of equations --------------------------------------------------------------------------


@complex_lowering("aten::linalg_lu_solve")
def linalg_lu_solve(
    b: Builder,
    LU: ComplexTensor,
    pivots: Tensor,
    B: ComplexTensor,
    *,
    left: bool = True,
    adjoint: bool = False,
) -> ComplexTensor:
    if not left:
        solved = _solve_by_lu(b, LU, pivots, adjoint_of(b, B), of_adjoint=not adjoint)
        return adjoint_of(b, solved)
    return _solve_by_lu(b, LU, pivots, B, of_adjoint=adjoint)


def _solve_by_lu(
    b: Builder, lu: ComplexTensor, pivots: Tensor, right: ComplexTensor, *, of_adjoint: bool
) -> ComplexTensor:
    """X with A X = right, or adjoint(A) X = right."""
    p = _permutation(b, lu, pivots)
    if of_adjoint:
        flipped = adjoint_of(b, lu)
        x = linalg_solve_triangular(b, flipped, right, upper=False)
        x = linalg_solve_triangular(b, flipped, x, upper=True, unitriangular=True)
        return arithmetic.bilinear(b, b.MatMul, p, x)
    right = arithmetic.bilinear(b, b.MatMul, transposed(b, p), right)
    x = linalg_solve_triangular(b, lu, right, upper=False, unitriangular=True)
    return linalg_solve_triangular(b, lu, x, upper=True)


@complex_lowering("aten::triangular_solve")
def triangular_solve(
    b: Builder,
    self: ComplexTensor,
    A: ComplexTensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[ComplexTensor, ComplexTensor]:
    matrix = A
    if transpose:
        matrix = ComplexTensor(transposed(b, A.real), transposed(b, A.imag))
    solution = linalg_solve_triangular(
        b, matrix, self, upper=upper != transpose, unitriangular=unitriangular
    )
    dims = [*b.dims(solution.real)[:-2], *b.dims(A.real)[-2:]]
    return solution, ComplexTensor(b.expand(A.real, dims), b.expand(A.imag, dims))


@complex_lowering("aten::cholesky_solve")
def cholesky_solve(
    b: Builder, self: ComplexTensor, input2: ComplexTensor, upper: bool = False
) -> ComplexTensor:
    lower = adjoint_of(b, input2) if upper else input2
    x = linalg_solve_triangular(b, lower, self, upper=False)
    return linalg_solve_triangular(b, adjoint_of(b, lower), x, upper=True)


@complex_lowering("aten::cholesky_inverse")
def cholesky_inverse(b: Builder, self: ComplexTensor, upper: bool = False) -> ComplexTensor:
    lower = adjoint_of(b, self) if upper else self
    one = of_real(b, identity(b, self.real.dim(-1), self.real.dtype))
    inverse = linalg_solve_triangular(b, lower, one, upper=False)
    return product(b, adjoint_of(b, inverse), inverse)


# -- QR --------------------------------------------------------------------------------------------


@complex_lowering("aten::geqrf")
def geqrf(b: Builder, self: ComplexTensor) -> tuple[ComplexTensor, ComplexTensor]:
    return reflections(b, self)


@complex_lowering("aten::linalg_qr")
def linalg_qr(
    b: Builder, A: ComplexTensor, mode: str = "reduced"
) -> tuple[ComplexTensor, ComplexTensor]:
    m, n = A.real.dim(-2), A.real.dim(-1)
    packed, tau = reflections(b, A)
    rows = m if mode == "complete" else shorter(m, n)
    r = ComplexTensor(upper_rows(b, packed.real, rows), upper_rows(b, packed.imag, rows))
    if mode == "r":
        return of_real(b, b.full([0], 0, A.real.dtype)), r
    return reflect(b, packed, tau, _identity(b, A, rows)), r


@complex_lowering("aten::linalg_householder_product")
def linalg_householder_product(
    b: Builder, input: ComplexTensor, tau: ComplexTensor
) -> ComplexTensor:
    return reflect(b, input, tau, _identity(b, input, input.real.dim(-1)))


def _identity(b: Builder, like: ComplexTensor, columns: Dim) -> ComplexTensor:
    *batch, m, _ = b.dims(like.real)
    one = identity(b, m, like.real.dtype, columns)
    return of_real(b, b.expand(one, [*batch, m, columns]))


@complex_lowering("aten::ormqr")
def ormqr(
    b: Builder,
    self: ComplexTensor,
    input2: ComplexTensor,
    input3: ComplexTensor,
    left: bool = True,
    transpose: bool = False,
) -> ComplexTensor:
    if left:
        return reflect(b, self, input2, input3, of_adjoint=transpose)
    flipped = reflect(b, self, input2, adjoint_of(b, input3), of_adjoint=not transpose)
    return adjoint_of(b, flipped)
