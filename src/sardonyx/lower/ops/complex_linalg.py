"""Spectra of complex matrices by way of real matrices of twice the size.

A number x + iy acts on pairs as [[x, -y], [y, x]]. A matrix of such blocks behaves as the complex
matrix does in sums, products, inverses and adjoints.
"""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_values import ComplexTensor, whole
from sardonyx.lower.matrices import symmetric, transposed, triangle
from sardonyx.lower.ops import linalg_spectra
from sardonyx.lower.registry import complex_lowering
from sardonyx.lower.values import Tensor


def _blocks(b: Builder, z: ComplexTensor) -> Tensor:
    *batch, rows, columns = b.dims(z)
    last = z.rank
    lines = [
        b.Concat(b.unsqueeze(left, [last]), b.unsqueeze(right, [last]), axis=last)
        for left, right in ((z.real, b.Neg(z.imag)), (z.imag, z.real))
    ]
    stacked = b.Concat(*(b.unsqueeze(line, [last - 1]) for line in lines), axis=last - 1)
    return b.reshape(stacked, [*batch, 2 * rows, 2 * columns])


def _from_blocks(b: Builder, x: Tensor, like: Tensor) -> ComplexTensor:
    """The complex matrix, of the shape of `like`, that `x` stands for."""
    *batch, rows, columns = b.dims(like)
    apart = b.reshape(x, [*batch, rows, 2, columns, 2])
    first = b.Gather(apart, 0, axis=x.rank + 1)
    real, imag = (b.Gather(first, index, axis=x.rank - 1) for index in (0, 1))
    return ComplexTensor(real, imag)


def _from_solution(b: Builder, x: Tensor) -> ComplexTensor:
    """As `_from_blocks`, where the shape is that of both sides broadcast."""
    last = x.rank - 1
    column = b.slice(x, last, 0, None, 2)
    return ComplexTensor(*(b.slice(column, last - 1, start, None, 2) for start in (0, 1)))


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
    inverse = linalg_spectra.linalg_pinv(
        b, _blocks(b, self), atol=atol, rtol=rtol, hermitian=hermitian
    )
    return _from_blocks(b, inverse, transposed(b, self))


@complex_lowering("aten::linalg_lstsq")
def linalg_lstsq(
    b: Builder,
    self: ComplexTensor,
    b_: ComplexTensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    a, right = self, b_
    m, n = a.dim(-2), a.dim(-1)
    if rcond is None and isinstance(m, int) and isinstance(n, int):
        rcond = torch.finfo(a.dtype).eps * max(m, n)  # not that of the larger matrix
    is_vector = right.rank == 1 or (a.rank - 1 == right.rank and b.dims(right) == b.dims(a)[:-1])
    if is_vector:
        right = whole(b, b.unsqueeze(right, [right.rank]))
    x, residuals, rank, values = linalg_spectra.linalg_lstsq(
        b, _blocks(b, a), _blocks(b, right), rcond, driver=driver
    )
    solution = _from_solution(b, x)
    return (
        b.squeeze(solution, [-1]) if is_vector else solution,
        _each_once(b, residuals),
        b.Div(rank, 2),
        _each_once(b, values),
    )
