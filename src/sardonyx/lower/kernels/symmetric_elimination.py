"""A = L D transpose(L) of symmetric matrices with the pivots of Bunch and Kaufman, as LAPACK's
sytrf: D has blocks of one or two rows, so each matrix of a batch goes on at its own pace."""

from __future__ import annotations

from typing import NamedTuple

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.kernels.elimination import swapped
from sardonyx.lower.kernels.loops import repeat
from sardonyx.lower.kernels.matrices import (
    at,
    expand_rows,
    on_diagonal,
    row_numbers,
    symmetric,
    transposed,
    zeros_of_product,
)
from sardonyx.lower.values import Tensor

_LARGE_ENOUGH = (1 + 17**0.5) / 8
"""How large a pivot has to be beside the others of its column."""


class _Pivot(NamedTuple):
    place: Tensor
    is_double: Tensor
    """Whether it is a block of two rows."""
    is_zero: Tensor


class _Elimination:
    """Each matrix of the batch has its current row `k`."""

    def __init__(self, b: Builder, a: Tensor) -> None:
        self._b = b
        self._axis, self._n, self._dtype = a.rank - 2, a.dim(-1), a.dtype
        self._row, self._column = row_numbers(b, self._n), arange(b, self._n)

    def _along(self, x: Tensor, place: Tensor) -> Tensor:
        """The column of a symmetric matrix at a place."""
        b = self._b
        return b.MatMul(x, b.cast(b.Equal(self._row, place), self._dtype))

    def _pick(self, x: Tensor, place: Tensor) -> Tensor:
        b = self._b
        return b.ReduceSum(b.Where(b.Equal(self._row, place), x, 0.0), [self._axis], keepdims=1)

    def _largest(self, x: Tensor) -> Tensor:
        return self._b.ReduceMax(x, [self._axis], keepdims=1)

    def _pivot(self, rest: Tensor, k: Tensor) -> _Pivot:
        b, row = self._b, self._row
        leading = self._along(rest, k)
        own = b.Abs(self._pick(leading, k))
        below = b.Where(b.Greater(row, k), b.Abs(leading), -1.0)
        of_column, other = b.Max(self._largest(below), 0.0), b.ArgMax(below, axis=self._axis)
        crossing = self._along(rest, other)
        outside = b.And(b.GreaterOrEqual(row, k), b.Not(b.Equal(row, other)))
        of_row = self._largest(b.Where(outside, b.Abs(crossing), 0.0))
        bound = b.Mul(of_column, _LARGE_ENOUGH)
        stays = b.Or(
            b.GreaterOrEqual(own, bound),
            b.GreaterOrEqual(own, b.Mul(bound, b.Div(of_column, of_row))),
        )
        crossed = b.Abs(self._pick(crossing, other))
        is_single = b.GreaterOrEqual(crossed, b.Mul(of_row, _LARGE_ENOUGH))
        is_zero = b.And(b.Equal(b.Max(own, of_column), 0), b.Less(k, b.size(self._n)))
        return _Pivot(b.Where(stays, k, other), b.Not(b.Or(stays, is_single)), is_zero)

    def step(self, i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        b, row, column = self._b, self._row, self._column
        rest, packed, pivots, k, info = carried
        pivot, is_double, is_zero = self._pivot(rest, k)
        last = b.Add(k, b.cast(is_double, torch.int64))
        source = expand_rows(b, swapped(b, row, last, pivot), self._n)
        rest = b.GatherElements(rest, source, axis=-2)
        rest = b.GatherElements(rest, transposed(b, source), axis=-1)
        following = b.Add(k, 1)
        first, second = self._along(rest, k), self._along(rest, following)
        d11, d21 = self._pick(first, k), self._pick(first, following)
        d22 = self._pick(second, following)
        remains = b.Greater(row, last)
        w1, w2 = b.Where(remains, first, 0.0), b.Where(remains, second, 0.0)
        # The inverse of the block over its element off the diagonal, as LAPACK has it.
        r11, r22 = b.Div(d22, d21), b.Div(d11, d21)
        factor = b.Div(b.Div(1.0, b.Sub(b.Mul(r11, r22), 1.0)), d21)
        usable = b.Not(b.Equal(d11, 0))
        single = b.Where(b.And(usable, remains), b.Div(w1, d11), 0.0)
        l1 = b.Where(is_double, b.Mul(factor, b.Sub(b.Mul(r11, w1), w2)), single)
        l2 = b.Where(is_double, b.Mul(factor, b.Sub(b.Mul(r22, w2), w1)), 0.0)
        w2 = b.Where(is_double, w2, 0.0)
        products = b.Add(b.Mul(l1, transposed(b, w1)), b.Mul(l2, transposed(b, w2)))
        open_ = b.And(remains, b.Greater(column, last))
        rest = b.Where(open_, b.Sub(rest, products), 0.0)

        is_first, is_second = b.Equal(row, k), b.And(is_double, b.Equal(row, following))
        found = b.Where(is_first, d11, b.Where(is_second, d21, l1))
        packed = b.Where(b.Equal(column, k), found, packed)
        found = b.Where(is_second, d22, l2)
        packed = b.Where(b.And(is_double, b.Equal(column, following)), found, packed)
        number = b.Add(pivot, 1)
        number = b.Where(is_double, b.Neg(number), number)
        pivots = b.Where(b.Or(is_first, is_second), number, pivots)
        info = b.Where(b.And(is_zero, b.Equal(info, 0)), following, info)
        return [rest, packed, pivots, b.Add(last, 1), info]


def ldl_factors(b: Builder, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """L and D in one lower triangle, LAPACK's pivots (from 1; negative for a block of two), and
    the number of the first pivot that is 0."""
    *batch, n, _ = b.dims(a)
    start = [
        symmetric(b, a),
        b.full([*batch, n, n], 0, a.dtype),
        b.full([*batch, n, 1], 0, torch.int64),
        b.full([*batch, 1, 1], 0, torch.int64),
        b.full([*batch, 1, 1], 0, torch.int64),
    ]
    _, packed, pivots, _, info = repeat(b, n, start, _Elimination(b, a).step)
    return packed, b.squeeze(pivots, [-1]), b.squeeze(info, [-2, -1])


def solve_by_ldl(b: Builder, packed: Tensor, pivots: Tensor, right: Tensor) -> Tensor:
    """X with A X = right, of A's factors and LAPACK's pivots in int64."""
    n = packed.dim(-1)
    row, column = row_numbers(b, n), arange(b, n)
    if b.dims(right)[:-2] != b.dims(packed)[:-2]:
        right = b.Add(right, zeros_of_product(b, packed, right))
    is_double = b.Less(pivots, 0)
    earlier = b.CumSum(b.cast(is_double, torch.int64), b.scalar(-1), exclusive=1)
    is_first = b.And(is_double, b.Equal(b.Mod(earlier, 2), 0))
    is_second = b.And(is_double, b.Not(is_first))
    places = b.Add(b.expand(column, b.dims(pivots)), b.cast(is_first, torch.int64))
    # The second row of a block is swapped along with the first.
    targets = b.Where(is_second, places, b.Sub(b.Abs(pivots), 1))
    block = b.unsqueeze(is_first, [-2])
    reach = b.Add(column, b.cast(block, torch.int64))
    lower = b.Where(b.Greater(row, reach), packed, 0.0)
    beside = b.Where(b.And(b.Equal(row, b.Add(column, 1)), block), packed, 0.0)

    def swap(x: Tensor, i: Tensor) -> Tensor:
        place, target = (b.unsqueeze(at(b, y, -1, i), [-1]) for y in (places, targets))
        source = expand_rows(b, swapped(b, row, place, target), right.dim(-1))
        return b.GatherElements(x, source, axis=-2)

    def forward(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        x = swap(carried[0], i)
        return [b.Sub(x, b.Mul(at(b, lower, -1, i), at(b, x, -2, i)))]

    def backward(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        (x,) = carried
        place = b.Sub(b.size(n - 1), i)
        known = b.MatMul(transposed(b, at(b, lower, -1, place)), x)
        x = b.Where(b.Equal(row, place), b.Sub(x, known), x)
        return [swap(x, place)]

    (x,) = repeat(b, n, [right], forward)
    x = b.MatMul(_inverse_of_blocks(b, on_diagonal(b, packed), beside), x)
    return repeat(b, n, [b.with_shape(x, right.shape or ())], backward)[0]


def _inverse_of_blocks(b: Builder, diagonal: Tensor, beside: Tensor) -> Tensor:
    """Of the matrix with `diagonal` and, below and above it, what is `beside` it."""
    n = diagonal.dim(-1)
    own = b.unsqueeze(diagonal, [-1])
    off = b.Add(beside, transposed(b, beside))
    is_off = b.cast(b.Not(b.Equal(off, 0)), own.dtype)
    is_paired = b.Greater(b.ReduceMax(is_off, [own.rank - 1], keepdims=1), 0)
    partner = b.MatMul(is_off, own)
    between = b.ReduceSum(off, [own.rank - 1], keepdims=1)
    determinant = b.Sub(b.Mul(own, partner), b.Mul(between, between))
    reciprocal = b.Where(is_paired, b.Div(partner, determinant), b.Div(1.0, own))
    crossed = b.Where(is_paired, b.Neg(b.Div(off, determinant)), 0.0)
    on_it = b.Equal(row_numbers(b, n), arange(b, n))
    return b.Where(on_it, reciprocal, crossed)
