"""What is made of singular values and eigenvalues."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.blocks import blocks, each_once, from_blocks, from_solution
from sardonyx.lower.complex.blocks import hermitian as hermitian_matrix
from sardonyx.lower.complex.values import ComplexTensor
from sardonyx.lower.kernels.householder import reflect, reflections
from sardonyx.lower.kernels.jacobi import (
    SVD,
    eigenvalues_of_symmetric,
    is_wide,
    singular_value_decomposition,
    singular_values,
)
from sardonyx.lower.kernels.matrices import identity, on_diagonal, shorter, symmetric, transposed
from sardonyx.lower.kernels.reductions import reduce_dims
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor

# Singular vectors and eigenvectors are unique but for a sign (and where values are equal, but for
# a rotation): these are as right as LAPACK's, and need not be the same.


@lowering("aten::_linalg_svd")
def linalg_svd(
    b: Builder,
    A: Tensor,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> tuple[Tensor | None, Tensor, Tensor | None]:
    if isinstance(A, ComplexTensor):
        # Equal pairs of values leave their vectors open: those have no form.
        return None, each_once(b, singular_values(b, blocks(b, A))), None
    if not compute_uv:
        nothing = b.full([0], 0, A.dtype)
        return nothing, singular_values(b, A), nothing
    if is_wide(A):
        u, values, vh = linalg_svd(b, transposed(b, A), full_matrices)
        assert u is not None and vh is not None
        return transposed(b, vh), values, transposed(b, u)
    if full_matrices and A.static_dim(-1) is None and A.dim(-1) != A.dim(-2):
        raise b.refuse("full_matrices needs a number of columns that is known at export time")
    svd = singular_value_decomposition(b, A)
    return _left_vectors(b, svd, full_matrices), svd.values, transposed(b, svd.right)


def _left_vectors(b: Builder, svd: SVD, full: bool) -> Tensor:
    """The directions of orthogonal columns; where a column is 0, or there are none, whatever is
    orthogonal to the others."""
    *batch, m, k = b.dims(svd.scaled_left)
    count = m if full else k
    packed, tau = reflections(b, svd.scaled_left)
    start = b.expand(identity(b, m, packed.dtype, count), [*batch, m, count])
    vectors = reflect(b, packed, tau, start)
    turned = b.Less(on_diagonal(b, packed), 0)
    signs = b.Where(turned, b.scalar(-1, packed.dtype), b.scalar(1, packed.dtype))
    if full and m != k:
        signs = b.Concat(signs, b.full([*batch, m - k], 1, packed.dtype), axis=-1)
    return b.Mul(vectors, b.unsqueeze(signs, [-2]))


@lowering("aten::_linalg_eigh")
def linalg_eigh(
    b: Builder, A: Tensor, UPLO: str = "L", compute_v: bool = True
) -> tuple[Tensor, Tensor | None]:
    upper = UPLO.upper() == "U"
    if isinstance(A, ComplexTensor):
        doubled = blocks(b, hermitian_matrix(b, A, upper=upper))
        return each_once(b, eigenvalues_of_symmetric(b, doubled, upper=upper)[0]), None
    values, vectors = eigenvalues_of_symmetric(b, A, upper=upper)
    return values, vectors if compute_v else b.full([0], 0, A.dtype)


@lowering("aten::linalg_pinv.atol_rtol_tensor")
def linalg_pinv(
    b: Builder,
    self: Tensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: bool = False,
) -> Tensor:
    if isinstance(self, ComplexTensor):
        matrix = hermitian_matrix(b, self, upper=False) if hermitian else self
        inverse = linalg_pinv(b, blocks(b, matrix), atol=atol, rtol=rtol, hermitian=hermitian)
        return from_blocks(b, inverse, transposed(b, self))
    m, n = self.dim(-2), self.dim(-1)
    if shorter(m, n) == 0:
        return b.full([*b.dims(self)[:-2], n, m], 0, self.dtype)
    a = symmetric(b, self) if hermitian else self
    wide = is_wide(a)
    svd = singular_value_decomposition(b, transposed(b, a) if wide else a)
    inverse = pseudo_inverse(b, svd, _limit(b, self, atol, rtol, svd.values))
    return transposed(b, inverse) if wide else inverse


def pseudo_inverse(b: Builder, svd: SVD, limit: Tensor) -> Tensor:
    """V diag(1 / s) transpose(U), without the singular values up to `limit`."""
    kept = b.Greater(svd.values, limit)
    square = b.Mul(svd.values, svd.values)
    factors = b.Where(kept, b.Div(1.0, b.Where(kept, square, 1.0)), 0.0)
    return b.MatMul(b.Mul(svd.right, b.unsqueeze(factors, [-2])), transposed(b, svd.scaled_left))


def _limit(
    b: Builder, a: Tensor, atol: Tensor | None, rtol: Tensor | None, values: Tensor
) -> Tensor:
    """Up to where singular values count as 0, as [..., 1]."""
    absolute = b.scalar(0, a.dtype) if atol is None else b.cast(atol, a.dtype)
    if rtol is not None:
        relative = b.cast(rtol, a.dtype)
    else:
        relative = default_tolerance(b, a)
        if atol is not None:
            relative = b.Where(b.Greater(absolute, 0), 0.0, relative)
    largest = b.slice(values, -1, 0, 1)
    absolute, relative = (b.unsqueeze(x, [-1]) if x.rank else x for x in (absolute, relative))
    return b.Max(absolute, b.Mul(relative, largest))


def default_tolerance(b: Builder, a: Tensor) -> Tensor:
    """eps * max(m, n)."""
    eps = torch.finfo(a.dtype).eps
    m, n = a.dim(-2), a.dim(-1)
    if isinstance(m, int) and isinstance(n, int):
        return b.scalar(eps * max(m, n), a.dtype)
    longest = b.Max(b.cast(b.size(m), a.dtype), b.cast(b.size(n), a.dtype))
    return b.squeeze(b.Mul(longest, eps), [0])


@lowering("aten::linalg_lstsq")
def linalg_lstsq(
    b: Builder,
    self: Tensor,
    b_: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    a, right = self, b_
    m, n = a.dim(-2), a.dim(-1)
    is_vector = right.rank == 1 or (a.rank - 1 == right.rank and b.dims(right) == b.dims(a)[:-1])
    right = b.unsqueeze(right, [-1]) if is_vector else right
    if isinstance(a, ComplexTensor) and isinstance(right, ComplexTensor):
        if rcond is None and isinstance(m, int) and isinstance(n, int):
            rcond = torch.finfo(a.dtype).eps * max(m, n)  # not that of the larger matrix
        doubled = linalg_lstsq(b, blocks(b, a), blocks(b, right), rcond, driver=driver)
        z, (residuals, rank, values) = from_solution(b, doubled[0]), doubled[1:]
        results = each_once(b, residuals), b.Div(rank, 2), each_once(b, values)
        return b.squeeze(z, [-1]) if is_vector else z, *results
    wide = is_wide(a)
    svd = singular_value_decomposition(b, transposed(b, a) if wide else a)
    relative = default_tolerance(b, a) if rcond is None else b.scalar(rcond, a.dtype)
    limit = b.Mul(relative, b.slice(svd.values, -1, 0, 1))
    inverse = pseudo_inverse(b, svd, limit)
    x = b.MatMul(transposed(b, inverse) if wide else inverse, right)
    nothing = b.full([0], 0, a.dtype)
    residuals = nothing
    if driver in ("gels", "gelsd", "gelss"):
        if not (isinstance(m, int) and isinstance(n, int)):
            raise b.refuse("whether there are residuals depends on sizes that are dynamic")
        if m > n:
            rest = b.Sub(right, b.MatMul(a, x))
            residuals = reduce_dims(b, "ReduceSumSquare", rest, -2)
    kept = b.cast(b.Greater(svd.values, limit), torch.int64)
    rank = reduce_dims(b, "ReduceSum", kept, -1)
    return (
        b.squeeze(x, [-1]) if is_vector else x,
        residuals,
        b.full([0], 0, torch.int64) if driver == "gels" else rank,
        svd.values if driver in ("gelsd", "gelss") else nothing,
    )
