"""Matrices in the last two axes of a tensor, with any axes before them."""

from __future__ import annotations

import sympy
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import conjugate
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.onnx_types.shapes import broadcast_shapes
from sardonyx.lower.values import Dim, Tensor


def transposed(b: Builder, x: Tensor) -> Tensor:
    return b.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


def adjoint(b: Builder, x: Tensor) -> Tensor:
    """The conjugate transpose, which of real matrices is the transpose."""
    return conjugate(b, transposed(b, x))


def shorter(left: Dim, right: Dim) -> Dim:
    """The smaller of two sizes."""
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right)
    return left if left == right else sympy.Min(left, right)


def row_numbers(b: Builder, count: Dim) -> Tensor:
    """0 .. count - 1 as a column: compared with a row of numbers, it makes a matrix."""
    return b.unsqueeze(arange(b, count), [-1])


def at(b: Builder, x: Tensor, axis: int, index: Tensor) -> Tensor:
    """What lies at `index` (of shape [1]) along `axis`, which stays with size 1."""
    result = b.Gather(x, index, axis=axis)
    sizes = x.shape or ()
    return b.with_shape(result, [1 if a == axis % x.rank else d for a, d in enumerate(sizes)])


def identity(b: Builder, size: Dim, dtype: torch.dtype, columns: Dim | None = None) -> Tensor:
    """Ones on the diagonal of an otherwise empty matrix."""
    columns, dtype = size if columns is None else columns, dtype.to_real()
    if isinstance(size, int) and isinstance(columns, int) and size * columns <= 1024:
        return b.const(torch.eye(size, columns, dtype=dtype))
    on_diagonal = b.Equal(row_numbers(b, size), arange(b, columns))
    return b.cast(on_diagonal, dtype)


def triangle(b: Builder, x: Tensor, *, upper: bool, diagonal: int = 0) -> Tensor:
    """`x` with zeros below (or above) a diagonal."""
    offset = b.scalar(diagonal) if diagonal else None
    result = b.Trilu(x, offset, upper=int(upper))
    return b.with_shape(result, b.dims(x))


def symmetric(b: Builder, x: Tensor, *, upper: bool = False) -> Tensor:
    """The symmetric matrix of which one triangle is given."""
    half = triangle(b, x, upper=upper)
    rest = triangle(b, x, upper=upper, diagonal=1 if upper else -1)
    return b.with_shape(b.Add(half, transposed(b, rest)), b.dims(x))


def on_diagonal(b: Builder, x: Tensor) -> Tensor:
    """The main diagonal, as the last axis."""
    length = shorter(x.dim(-2), x.dim(-1))
    batch = b.dims(x)[:-2]
    places = b.expand(row_numbers(b, length), [*batch, length, 1])
    return b.squeeze(b.GatherElements(x, places, axis=-1), [-1])


def zeros_of_product(b: Builder, left: Tensor, right: Tensor) -> Tensor:
    """Zeros of the shape that the product of two stacks of matrices has."""
    batch = broadcast_shapes((left.shape or ())[:-2], (right.shape or ())[:-2]) or ()
    known = [d for d in batch if d is not None]
    dims = left.dim(-2), right.dim(-1)
    if len(known) == len(batch):
        return b.full([*known, *dims], 0, right.dtype)
    return b.with_shape(b.full_like(b.MatMul(left, right), 0), [*batch, *dims])


def expand_rows(b: Builder, x: Tensor, columns: Dim) -> Tensor:
    """A column repeated `columns` times."""
    return b.expand(x, [*b.dims(x)[:-1], columns])
