"""Linear algebra of complex matrices by way of real ones of twice the size.

A number x + iy acts on pairs as [[x, -y], [y, x]]. A matrix of such blocks behaves as the complex
matrix does in sums, products, inverses and adjoints.
"""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_values import ComplexTensor
from sardonyx.lower.matrices import identity, symmetric, transposed, triangle
from sardonyx.lower.ops import linalg, linalg_factorizations, linalg_solves, linalg_spectra
from sardonyx.lower.registry import complex_lowering
from sardonyx.lower.values import Tensor


def _blocks(b: Builder, z: ComplexTensor) -> Tensor:
    *batch, rows, columns = b.dims(z.real)
    last = z.rank
    lines = [
        b.Concat(b.unsqueeze(left, [last]), b.unsqueeze(right, [last]), axis=last)
        for left, right in ((z.real, b.Neg(z.imag)), (z.imag, z.real))
    ]
    stacked = b.Concat(*(b.unsqueeze(line, [last - 1]) for line in lines), axis=last - 1)
    return b.reshape(stacked, [*batch, 2 * rows, 2 * columns])


def _from_blocks(b: Builder, x: Tensor, like: ComplexTensor) -> ComplexTensor:
    """The complex matrix, of the shape of `like`, that `x` stands for."""
    *batch, rows, columns = b.dims(like.real)
    apart = b.reshape(x, [*batch, rows, 2, columns, 2])
    first = b.Gather(apart, 0, axis=x.rank + 1)
    real, imag = (b.Gather(first, index, axis=x.rank - 1) for index in (0, 1))
    return ComplexTensor(real, imag)


def _row(b: Builder, info: Tensor) -> Tensor:
    """Of a row of blocks, the row of the complex matrix; 0 stays 0."""
    return b.Div(b.Add(info, 1), 2)


@complex_lowering("aten::linalg_inv_ex")
def linalg_inv_ex(
    b: Builder, A: ComplexTensor, *, check_errors: bool = False
) -> tuple[ComplexTensor, Tensor]:
    inverse, info = linalg_solves.linalg_inv_ex(b, _blocks(b, A))
    return _from_blocks(b, inverse, A), _row(b, info)


@complex_lowering("aten::linalg_matrix_exp")
def linalg_matrix_exp(b: Builder, self: ComplexTensor) -> ComplexTensor:
    return _from_blocks(b, linalg.linalg_matrix_exp(b, _blocks(b, self)), self)


@complex_lowering("aten::_linalg_solve_ex")
def linalg_solve_ex(
    b: Builder,
    A: ComplexTensor,
    B: ComplexTensor,
    *,
    left: bool = True,
    check_errors: bool = False,
) -> tuple[ComplexTensor, None, None, Tensor]:
    matrix, right = A, B
    is_vector = _is_vector(b, A, B)
    if is_vector:
        right = _as_column(b, B)
        if not left:
            matrix = ComplexTensor(transposed(b, A.real), transposed(b, A.imag))
    solution, _, _, info = linalg_solves.linalg_solve_ex(
        b, _blocks(b, matrix), _blocks(b, right), left=left or is_vector
    )
    x = _from_solution(b, solution)
    return _as_vector(b, x) if is_vector else x, None, None, _row(b, info)


def _is_vector(b: Builder, matrix: ComplexTensor, right: ComplexTensor) -> bool:
    """Whether a right side is one vector for each matrix."""
    if right.rank == 1:
        return True
    return matrix.rank - 1 == right.rank and b.dims(right.real) == b.dims(matrix.real)[:-1]


def _as_column(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(*(b.unsqueeze(part, [z.rank]) for part in (z.real, z.imag)))


def _as_vector(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(*(b.squeeze(part, [z.rank - 1]) for part in (z.real, z.imag)))


def _from_solution(b: Builder, x: Tensor) -> ComplexTensor:
    """As `_from_blocks`, where the shape is that of both sides broadcast."""
    last = x.rank - 1
    column = b.slice(x, last, 0, None, 2)
    return ComplexTensor(*(b.slice(column, last - 1, start, None, 2) for start in (0, 1)))


@complex_lowering("aten::linalg_solve_triangular")
def linalg_solve_triangular(
    b: Builder,
    self: ComplexTensor,
    B: ComplexTensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> ComplexTensor:
    beside = 1 if upper else -1
    kept = ComplexTensor(
        *(
            triangle(b, part, upper=upper, diagonal=beside if unitriangular else 0)
            for part in (self.real, self.imag)
        )
    )
    if unitriangular:
        one = identity(b, self.real.dim(-1), self.real.dtype)
        kept = ComplexTensor(b.Add(kept.real, one), kept.imag)
    return linalg_solve_ex(b, kept, B, left=left)[0]


@complex_lowering("aten::linalg_cholesky_ex")
def linalg_cholesky_ex(
    b: Builder, self: ComplexTensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[ComplexTensor, Tensor]:
    # The blocks on the factor's diagonal are real: the factor of the blocks is triangular, too.
    factor, info = linalg_factorizations.linalg_cholesky_ex(b, _blocks(b, self), upper=upper)
    return _from_blocks(b, factor, self), _row(b, info)


@complex_lowering("aten::cholesky")
def cholesky(b: Builder, self: ComplexTensor, upper: bool = False) -> ComplexTensor:
    return linalg_cholesky_ex(b, self, upper=upper)[0]


@complex_lowering("aten::_linalg_svd")
def linalg_svd(
    b: Builder,
    A: ComplexTensor,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> tuple[None, Tensor, None]:
    # Equal pairs of values leave their vectors open: those have no form.
    _, values, _ = linalg_spectra.linalg_svd(b, _blocks(b, A), compute_uv=False)
    return None, _each_once(b, values), None


@complex_lowering("aten::_linalg_eigh")
def linalg_eigh(
    b: Builder, A: ComplexTensor, UPLO: str = "L", compute_v: bool = True
) -> tuple[Tensor, None]:
    hermitian = _hermitian(b, A, upper=UPLO.upper() == "U")
    values, _ = linalg_spectra.linalg_eigh(b, _blocks(b, hermitian), UPLO, compute_v=False)
    return _each_once(b, values), None


def _hermitian(b: Builder, z: ComplexTensor, *, upper: bool) -> ComplexTensor:
    """The matrix of which one triangle is given."""
    kept = triangle(b, z.imag, upper=upper, diagonal=1 if upper else -1)
    return ComplexTensor(symmetric(b, z.real, upper=upper), b.Sub(kept, transposed(b, kept)))


def _each_once(b: Builder, values: Tensor) -> Tensor:
    """Sorted values that come in equal pairs."""
    return b.slice(values, values.rank - 1, 0, None, 2)


@complex_lowering("aten::linalg_pinv.atol_rtol_tensor")
def linalg_pinv(
    b: Builder,
    self: ComplexTensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: bool = False,
) -> ComplexTensor:
    if hermitian:
        self = _hermitian(b, self, upper=False)
    turned = ComplexTensor(transposed(b, self.real), transposed(b, self.imag))
    inverse = linalg_spectra.linalg_pinv(
        b, _blocks(b, self), atol=atol, rtol=rtol, hermitian=hermitian
    )
    return _from_blocks(b, inverse, turned)


@complex_lowering("aten::linalg_lstsq")
def linalg_lstsq(
    b: Builder,
    self: ComplexTensor,
    b_: ComplexTensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> tuple[ComplexTensor, Tensor, Tensor, Tensor]:
    a, right = self, b_
    m, n = a.real.dim(-2), a.real.dim(-1)
    if rcond is None and isinstance(m, int) and isinstance(n, int):
        rcond = torch.finfo(a.real.dtype).eps * max(m, n)  # not that of the larger matrix
    is_vector = _is_vector(b, a, right)
    if is_vector:
        right = _as_column(b, right)
    x, residuals, rank, values = linalg_spectra.linalg_lstsq(
        b, _blocks(b, a), _blocks(b, right), rcond, driver=driver
    )
    solution = _from_solution(b, x)
    return (
        _as_vector(b, solution) if is_vector else solution,
        _each_once(b, residuals),
        b.Div(rank, 2),
        _each_once(b, values),
    )
