"""Factorizations of matrices: LU, Cholesky, LDL, QR."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.kernels.elimination import (
    cholesky_factor,
    first_zero,
    inverse_of_triangle,
    lu_factors,
    order_of,
    permutation,
)
from sardonyx.lower.kernels.householder import reflect, reflections
from sardonyx.lower.kernels.matrices import (
    adjoint,
    identity,
    on_diagonal,
    shorter,
    triangle,
)
from sardonyx.lower.kernels.reductions import reduce_dims
from sardonyx.lower.kernels.symmetric_elimination import ldl_factors
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Tensor


@lowering("aten::_linalg_check_errors")
def check_errors(b: Builder, info: Tensor, api_name: str, *, is_matrix: bool) -> tuple[()]:
    # ONNX cannot raise: where PyTorch does, the file gives inf and NaN.
    return ()


# -- LU --------------------------------------------------------------------------------------------


@lowering("aten::linalg_lu_factor_ex")
def linalg_lu_factor_ex(
    b: Builder, A: Tensor, *, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    lu = lu_factors(b, A)
    return lu.packed, lapack_pivots(b, lu.pivots), first_zero(b, lu.packed)


@lowering("aten::linalg_lu")
def linalg_lu(b: Builder, A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    lu = lu_factors(b, A)
    return permutation(b, lu.order, A.dtype), *triangles(b, lu.packed)


@lowering("aten::lu_unpack")
def lu_unpack(
    b: Builder,
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    nothing = b.full([0], 0, LU_data.dtype)
    lower, upper = triangles(b, LU_data) if unpack_data else (nothing, nothing)
    if not unpack_pivots:
        return nothing, lower, upper
    order = order_of(b, from_lapack(b, LU_pivots), arange(b, LU_data.dim(-2)))
    return permutation(b, order, LU_data.dtype), lower, upper


def lapack_pivots(b: Builder, pivots: Tensor) -> Tensor:
    """Counted from 1, in int32."""
    return b.cast(b.Add(pivots, 1), torch.int32)


def from_lapack(b: Builder, pivots: Tensor) -> Tensor:
    return b.Sub(b.cast(pivots, torch.int64), 1)


def triangles(b: Builder, packed: Tensor) -> tuple[Tensor, Tensor]:
    """L, with ones on its diagonal, and U."""
    m, n = packed.dim(-2), packed.dim(-1)
    k = shorter(m, n)
    left = packed if n == k else b.slice(packed, -1, 0, k)
    left = b.with_shape(left, [*b.dims(packed)[:-1], k])
    lower = triangle(b, left, upper=False, diagonal=-1)
    return b.Add(lower, identity(b, m, packed.dtype, k)), upper_rows(b, packed, k)


def upper_rows(b: Builder, packed: Tensor, count: Dim) -> Tensor:
    """The upper triangle of the first rows."""
    *batch, m, n = b.dims(packed)
    if m == count:
        return triangle(b, packed, upper=True)
    top = b.slice(packed, -2, 0, shorter(m, n))
    return triangle(b, b.with_shape(top, [*batch, shorter(m, n), n]), upper=True)


# -- determinants ----------------------------------------------------------------------------------


@lowering("aten::_linalg_det")
def linalg_det(b: Builder, A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    lu = lu_factors(b, A)
    if A.is_complex or A.dtype == torch.float64:
        # ONNX Runtime has no Det of float64, and one of float32 would lose half the digits.
        determinant = b.Mul(parity(b, lu.pivots, A.dtype), _product(b, on_diagonal(b, lu.packed)))
    else:
        determinant = b.Det(A)
    return determinant, lu.packed, lapack_pivots(b, lu.pivots)


@lowering("aten::_linalg_slogdet")
def linalg_slogdet(b: Builder, A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    lu = lu_factors(b, A)
    diagonal = on_diagonal(b, lu.packed)
    sign = b.Mul(parity(b, lu.pivots, A.dtype), _product(b, b.Sign(diagonal)))
    size = reduce_dims(b, "ReduceSum", b.Log(b.Abs(diagonal)), -1)
    return sign, size, lu.packed, lapack_pivots(b, lu.pivots)


def _product(b: Builder, x: Tensor) -> Tensor:
    return reduce_dims(b, "ReduceProd", x, -1)


def parity(b: Builder, pivots: Tensor, dtype: torch.dtype) -> Tensor:
    """-1 where an odd number of rows was swapped, else 1."""
    stayed = b.Equal(pivots, arange(b, pivots.dim(-1)))
    signs = b.Where(stayed, b.scalar(1, dtype), b.scalar(-1, dtype))
    return _product(b, signs)


# -- Cholesky --------------------------------------------------------------------------------------


@lowering("aten::linalg_cholesky_ex")
def linalg_cholesky_ex(
    b: Builder, self: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    factor, info = cholesky_factor(b, adjoint(b, self) if upper else self)
    return adjoint(b, factor) if upper else factor, info


@lowering("aten::cholesky")
def cholesky(b: Builder, self: Tensor, upper: bool = False) -> Tensor:
    return linalg_cholesky_ex(b, self, upper=upper)[0]


@lowering("aten::cholesky_inverse")
def cholesky_inverse(b: Builder, self: Tensor, upper: bool = False) -> Tensor:
    inverse = inverse_of_triangle(b, self, upper=upper)
    flipped = adjoint(b, inverse)
    return b.MatMul(inverse, flipped) if upper else b.MatMul(flipped, inverse)


# -- LDL -------------------------------------------------------------------------------------------


@lowering("aten::linalg_ldl_factor_ex")
def linalg_ldl_factor_ex(
    b: Builder, self: Tensor, *, hermitian: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    packed, pivots, info = ldl_factors(b, self)
    return packed, b.cast(pivots, torch.int32), b.cast(info, torch.int32)


# -- QR --------------------------------------------------------------------------------------------


@lowering("aten::geqrf")
def geqrf(b: Builder, self: Tensor) -> tuple[Tensor, Tensor]:
    return reflections(b, self)


@lowering("aten::linalg_qr")
def linalg_qr(b: Builder, A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    *batch, m, n = b.dims(A)
    packed, tau = reflections(b, A)
    rows = m if mode == "complete" else shorter(m, n)
    r = upper_rows(b, packed, rows)
    if mode == "r":
        return b.full([0], 0, A.dtype), r
    start = b.expand(identity(b, m, A.dtype, rows), [*batch, m, rows])
    return reflect(b, packed, tau, start), r


@lowering("aten::linalg_householder_product")
def linalg_householder_product(b: Builder, input: Tensor, tau: Tensor) -> Tensor:
    *batch, m, n = b.dims(input)
    return reflect(b, input, tau, b.expand(identity(b, m, input.dtype, n), [*batch, m, n]))


@lowering("aten::ormqr")
def ormqr(
    b: Builder,
    self: Tensor,
    input2: Tensor,
    input3: Tensor,
    left: bool = True,
    transpose: bool = False,
) -> Tensor:
    if left:
        return reflect(b, self, input2, input3, of_adjoint=transpose)
    flipped = reflect(b, self, input2, adjoint(b, input3), of_adjoint=not transpose)
    return adjoint(b, flipped)
