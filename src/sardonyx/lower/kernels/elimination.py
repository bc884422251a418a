"""Gaussian elimination, a column at a time: LU, Cholesky, triangular systems.

Each step works on whole matrices under masks, so the loops do as many operations as LAPACK up to a
constant, for any batch and any size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor, real_part, whole_like
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.kernels.loops import repeat
from sardonyx.lower.kernels.matrices import (
    adjoint,
    at,
    expand_rows,
    identity,
    on_diagonal,
    row_numbers,
    shorter,
    transposed,
    triangle,
    zeros_of_product,
)
from sardonyx.lower.values import Tensor


@dataclass(frozen=True, slots=True)
class LU:
    """P A = L U."""

    packed: Tensor
    """U, and below the diagonal L, whose own diagonal is 1."""
    pivots: Tensor
    """int64[..., k]: the row that each step swapped with its own."""
    order: Tensor
    """int64[..., m]: which row of A each row of L U is."""


def lu_factors(b: Builder, a: Tensor) -> LU:
    """With partial pivoting: each step takes the row with the largest element of its column, for
    LAPACK the largest |x| + |y| of complex ones."""
    *batch, m, n = b.dims(a)
    k = shorter(m, n)
    row, column, step_number = row_numbers(b, m), arange(b, n), arange(b, k)

    def step(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        packed, pivots, order = carried
        candidates = at(b, packed, -1, i)
        if isinstance(candidates, ComplexTensor):
            sizes = b.Add(b.Abs(candidates.real), b.Abs(candidates.imag))
        else:
            sizes = b.Abs(candidates)
        pivot = b.ArgMax(b.Where(b.Less(row, i), -1.0, sizes), axis=len(batch))
        source = swapped(b, row, i, pivot)
        packed = b.GatherElements(packed, expand_rows(b, source, n), axis=-2)
        order = b.GatherElements(order, b.squeeze(source, [-1]), axis=-1)
        pivots = b.Where(b.Equal(step_number, i), b.squeeze(pivot, [-1]), pivots)
        leading = at(b, packed, -2, i)
        divisor = at(b, leading, -1, i)
        # A column of zeros is left as it is, as LAPACK does.
        usable = b.And(b.Greater(row, i), b.Not(b.Equal(divisor, 0)))
        factors = b.Where(usable, b.Div(at(b, packed, -1, i), divisor), 0.0)
        packed = b.Sub(packed, b.Mul(factors, b.Where(b.Greater(column, i), leading, 0.0)))
        packed = b.Where(b.And(usable, b.Equal(column, i)), factors, packed)
        return [packed, pivots, order]

    start = [
        a,
        b.expand(step_number, [*batch, k]),
        b.expand(arange(b, m), [*batch, m]),
    ]
    return LU(*repeat(b, k, start, step))


def order_of(b: Builder, pivots: Tensor, rows: Tensor) -> Tensor:
    """Where the swaps that `pivots` (from 0) tell move each of `rows` (0 .. m - 1)."""
    *batch, k = b.dims(pivots)
    row = b.unsqueeze(rows, [-1])

    def step(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        pivot = b.unsqueeze(at(b, pivots, -1, i), [-1])
        source = b.squeeze(swapped(b, row, i, pivot), [-1])
        return [b.GatherElements(carried[0], source, axis=-1)]

    return repeat(b, k, [b.expand(rows, [*batch, rows.dim(0)])], step)[0]


def swapped(b: Builder, row: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """The numbers in `row` with two of them exchanged."""
    moved = b.Where(b.Equal(row, second), first, row)
    return b.Where(b.Equal(row, first), second, moved)


def permutation(b: Builder, order: Tensor, dtype: torch.dtype) -> Tensor:
    """The matrix P for which A = P L U."""
    is_source = b.Equal(row_numbers(b, order.dim(-1)), b.unsqueeze(order, [-2]))
    return b.cast(is_source, dtype)


def solve_by_lu(
    b: Builder, packed: Tensor, order: Tensor, right: Tensor, *, of_adjoint: bool = False
) -> Tensor:
    """X with A X = right, or adjoint(A) X = right."""
    p = permutation(b, order, packed.dtype)
    if b.dims(right)[:-2] != b.dims(packed)[:-2]:
        # ONNX Runtime's MatMul does not broadcast where the batch is empty.
        right = b.Add(right, zeros_of_product(b, packed, right))
    if of_adjoint:
        flipped = adjoint(b, packed)
        x = solve_triangular(b, flipped, right, upper=False)
        x = solve_triangular(b, flipped, x, upper=True, unit=True)
        return b.MatMul(p, x)
    right = b.MatMul(transposed(b, p), right)
    x = solve_triangular(b, packed, right, upper=False, unit=True)
    return solve_triangular(b, packed, x, upper=True)


def solve_triangular(
    b: Builder, a: Tensor, right: Tensor, *, upper: bool, unit: bool = False
) -> Tensor:
    """X with A X = right; the other triangle of A, and with `unit` its diagonal, is not read."""
    n = a.dim(-1)
    row = row_numbers(b, n)
    a = triangle(b, a, upper=upper)
    last = b.size(n - 1)

    def step(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        (x,) = carried
        place = b.Sub(last, i) if upper else i
        factors = at(b, a, -2, place)
        found = b.Sub(at(b, right, -2, place), b.MatMul(factors, x))
        if not unit:
            found = b.Div(found, at(b, factors, -1, place))
        return [b.Where(b.Equal(row, place), found, x)]

    # What is not yet found is 0, so it adds nothing to the product.
    start = whole_like(b, whole_like(b, zeros_of_product(b, a, right), a), right)
    return repeat(b, n, [start], step)[0]


def inverse_of_triangle(b: Builder, a: Tensor, *, upper: bool) -> Tensor:
    return solve_triangular(b, a, identity(b, a.dim(-1), a.dtype), upper=upper)


def first_zero(b: Builder, packed: Tensor) -> Tensor:
    """LAPACK's `info`: the number, from 1, of the first pivot that is 0, or 0."""
    diagonal = on_diagonal(b, packed)
    *batch, k = b.dims(diagonal)
    if isinstance(k, int) and k == 0:
        return b.full(batch, 0, torch.int32)
    is_zero = b.cast(b.Equal(diagonal, 0), torch.int32)
    first = b.cast(b.ArgMax(is_zero, axis=len(batch), keepdims=0), torch.int32)
    found = b.cast(b.ReduceMax(is_zero, [len(batch)], keepdims=0), torch.int32)
    return b.Mul(b.Add(first, 1), found)


def cholesky_factor(b: Builder, a: Tensor) -> tuple[Tensor, Tensor]:
    """L with A = L adjoint(L), from the lower triangle of A, and LAPACK's `info`."""
    *batch, n, _ = b.dims(a)
    row, column = row_numbers(b, n), arange(b, n)

    def step(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        factor, info = carried
        known = adjoint(b, at(b, factor, -2, i))
        rest = b.Sub(at(b, a, -1, i), b.MatMul(factor, known))
        pivot = real_part(at(b, rest, -2, i))
        found = b.Div(rest, b.Sqrt(pivot))
        place = b.And(b.Equal(column, i), b.GreaterOrEqual(row, i))
        fails = b.And(b.Equal(info, 0), b.Not(b.Greater(pivot, 0)))
        info = b.Where(fails, b.Add(i, 1), info)
        return [b.Where(place, found, factor), info]

    start = [
        whole_like(b, b.full([*batch, n, n], 0, a.dtype), a),
        b.full([*batch, 1, 1], 0, torch.int64),
    ]
    factor, info = repeat(b, n, start, step)
    return factor, b.cast(b.squeeze(info, [-2, -1]), torch.int32)
