"""Complex matrices as real ones of twice the size.

A number x + iy acts on pairs as [[x, -y], [y, x]]. A matrix of such blocks behaves as the complex
matrix does in sums, products, inverses and adjoints.
"""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor
from sardonyx.lower.kernels.matrices import symmetric, transposed, triangle
from sardonyx.lower.values import Tensor


def blocks(b: Builder, z: ComplexTensor) -> Tensor:
    *batch, rows, columns = b.dims(z)
    last = z.rank
    lines = [
        b.Concat(b.unsqueeze(left, [last]), b.unsqueeze(right, [last]), axis=last)
        for left, right in ((z.real, b.Neg(z.imag)), (z.imag, z.real))
    ]
    stacked = b.Concat(*(b.unsqueeze(line, [last - 1]) for line in lines), axis=last - 1)
    return b.reshape(stacked, [*batch, 2 * rows, 2 * columns])


def from_blocks(b: Builder, x: Tensor, like: Tensor) -> ComplexTensor:
    """The complex matrix, of the shape of `like`, that `x` stands for."""
    *batch, rows, columns = b.dims(like)
    apart = b.reshape(x, [*batch, rows, 2, columns, 2])
    first = b.Gather(apart, 0, axis=x.rank + 1)
    real, imag = (b.Gather(first, index, axis=x.rank - 1) for index in (0, 1))
    return ComplexTensor(real, imag)


def from_solution(b: Builder, x: Tensor) -> ComplexTensor:
    """As `from_blocks`, where the shape is that of both sides broadcast."""
    last = x.rank - 1
    column = b.slice(x, last, 0, None, 2)
    return ComplexTensor(*(b.slice(column, last - 1, start, None, 2) for start in (0, 1)))


def hermitian(b: Builder, z: ComplexTensor, *, upper: bool) -> ComplexTensor:
    """The matrix of which one triangle is given."""
    kept = triangle(b, z.imag, upper=upper, diagonal=1 if upper else -1)
    return ComplexTensor(symmetric(b, z.real, upper=upper), b.Sub(kept, transposed(b, kept)))


def each_once(b: Builder, values: Tensor) -> Tensor:
    """Sorted values that come in equal pairs."""
    return b.slice(values, values.rank - 1, 0, None, 2)
