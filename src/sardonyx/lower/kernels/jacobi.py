"""Singular values and eigenvalues by Jacobi's rotations.

One-sided (Hestenes): columns are rotated in pairs until all are orthogonal; their lengths are then
the singular values. All pairs that have no column in common are rotated at once, and the columns
move round a table as the players of a tournament, so that every sweep meets every pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from sardonyx.aten.graph import Dim
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.kernels.loops import repeat
from sardonyx.lower.kernels.matrices import identity, shorter, symmetric, transposed
from sardonyx.lower.kernels.reductions import reduce_dims
from sardonyx.lower.kernels.windows import floor_divided
from sardonyx.lower.values import Tensor

_MOST_SWEEPS = 30
"""Convergence is quadratic: some six sweeps are usual."""


@dataclass(frozen=True, slots=True)
class SVD:
    """A = left diag(values) transpose(right), thin; values descend."""

    values: Tensor
    scaled_left: Tensor
    """left diag(values): where a value is 0, so is its column, and A does not tell what left is."""
    right: Tensor


def singular_values(b: Builder, a: Tensor) -> Tensor:
    """In descending order, along a new last axis."""
    if is_wide(a):
        a = transposed(b, a)
    *batch, m, n = b.dims(a)
    count = shorter(m, n)
    if _is_zero(count):
        return b.full([*batch, 0], 0, a.dtype)
    scaled, size = _scaled(b, a)
    lengths = _lengths(b, _orthogonal_columns(b, scaled, m))
    values, _ = b.TopK(lengths, b.size(count), axis=-1, outputs=2)
    return b.with_shape(b.Mul(values, b.squeeze(size, [-1])), [*batch, count])


def singular_value_decomposition(b: Builder, a: Tensor) -> SVD:
    """Of a matrix that has at least as many rows as columns, or columns that depend on others."""
    *batch, m, n = b.dims(a)
    count = shorter(m, n)
    if _is_zero(count):
        return SVD(
            b.full([*batch, count], 0, a.dtype),
            b.full([*batch, m, count], 0, a.dtype),
            b.full([*batch, n, count], 0, a.dtype),
        )
    scaled, size = _scaled(b, a)
    turned = b.expand(identity(b, n, a.dtype), [*batch, n, n])
    stacked = b.Concat(scaled, turned, axis=-2)
    columns = _orthogonal_columns(b, b.with_shape(stacked, [*batch, m + n, n]), m)
    products = b.with_shape(b.slice(columns, -2, 0, m), [*batch, m, n])
    right = b.with_shape(b.slice(columns, -2, m, None), [*batch, n, n])
    values, order = b.TopK(_lengths(b, products), b.size(count), axis=-1, outputs=2)
    order = b.unsqueeze(order, [-2])
    return SVD(
        b.with_shape(b.Mul(values, b.squeeze(size, [-1])), [*batch, count]),
        b.Mul(_picked(b, products, order, count), size),
        _picked(b, right, order, count),
    )


def eigenvalues_of_symmetric(
    b: Builder, a: Tensor, *, upper: bool = False
) -> tuple[Tensor, Tensor]:
    """In ascending order, along a new last axis, and their vectors; one triangle of `a` is read."""
    *batch, n, _ = b.dims(a)
    if _is_zero(n):
        return b.full([*batch, 0], 0, a.dtype), b.full([*batch, 0, 0], 0, a.dtype)
    scaled, size = _scaled(b, symmetric(b, a, upper=upper))
    # Moved up so far that none is negative, the eigenvalues are the singular values.
    shift = b.ReduceMax(
        reduce_dims(b, "ReduceL1", scaled, -1, keepdim=True), [len(batch)], keepdims=1
    )
    moved = b.Add(scaled, b.Mul(shift, identity(b, n, a.dtype)))
    vectors = singular_value_decomposition(b, b.with_shape(moved, [*batch, n, n])).right
    values = reduce_dims(b, "ReduceSum", b.Mul(vectors, b.MatMul(scaled, vectors)), -2)
    values, order = b.TopK(values, b.size(n), axis=-1, largest=0, outputs=2)
    return (
        b.with_shape(b.Mul(values, b.squeeze(size, [-1])), [*batch, n]),
        _picked(b, vectors, b.unsqueeze(order, [-2]), n),
    )


def is_wide(a: Tensor) -> bool:
    rows, columns = a.static_dim(-2), a.static_dim(-1)
    return rows is not None and columns is not None and rows < columns


def _is_zero(size: Dim) -> bool:
    return isinstance(size, int) and size == 0


def _scaled(b: Builder, a: Tensor) -> tuple[Tensor, Tensor]:
    """`a` over its largest element, whose squares neither overflow nor vanish, and that element."""
    size = reduce_dims(b, "ReduceMax", b.Abs(a), [-2, -1], keepdim=True)
    size = b.Where(b.Equal(size, 0), 1.0, size)
    return b.with_shape(b.Div(a, size), b.dims(a)), size


def _lengths(b: Builder, columns: Tensor) -> Tensor:
    return reduce_dims(b, "ReduceL2", columns, -2)


def _picked(b: Builder, columns: Tensor, order: Tensor, count: Dim) -> Tensor:
    *batch, rows, _ = b.dims(columns)
    places = b.expand(order, [*batch, rows, count])
    result = b.GatherElements(columns, places, axis=-1)
    return b.with_shape(result, [*batch, rows, count])


def _orthogonal_columns(b: Builder, columns: Tensor, measured: Dim) -> Tensor:
    """The columns, rotated until their first `measured` rows are orthogonal."""
    *batch, rows, n = b.dims(columns)
    half = floor_divided(n + 1, 2)
    count = 2 * half
    table = _padded(b, columns, count)
    places = arange(b, count)
    last = b.Sub(b.size(count), 1)
    seats = _next_seats(b, places, b.size(half))
    eps = torch.finfo(columns.dtype).eps
    tolerance = b.Mul(b.Sqrt(b.cast(b.size(measured), columns.dtype)), 4 * eps)
    total = reduce_dims(b, "ReduceSumSquare", b.slice(table, -2, 0, measured), [-2, -1], True)
    negligible = b.Mul(total, eps * eps)

    def step(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        table, worst = carried
        first, second = b.slice(table, -1, 0, half), b.slice(table, -1, half, None)
        x, y = b.slice(first, -2, 0, measured), b.slice(second, -2, 0, measured)
        own, other = (b.ReduceSumSquare(side, [len(batch)], keepdims=1) for side in (x, y))
        product = b.ReduceSum(b.Mul(x, y), [len(batch)], keepdims=1)
        is_small = b.LessOrEqual(b.Min(own, other), negligible)
        cosine = b.Div(b.Abs(product), b.Mul(b.Sqrt(own), b.Sqrt(other)))
        cosine = b.Where(is_small, 0.0, cosine)
        is_done = b.Equal(product, 0)
        ratio = b.Div(b.Sub(other, own), b.Mul(b.Where(is_done, 1.0, product), 2.0))
        sign = b.Where(b.Less(ratio, 0), b.scalar(-1, table.dtype), b.scalar(1, table.dtype))
        root = b.Sqrt(b.Add(b.Mul(ratio, ratio), 1.0))
        tangent = b.Where(is_done, 0.0, b.Div(sign, b.Add(b.Abs(ratio), root)))
        cos = b.Div(1.0, b.Sqrt(b.Add(b.Mul(tangent, tangent), 1.0)))
        sin = b.Mul(cos, tangent)
        turned = b.Concat(
            b.Sub(b.Mul(cos, first), b.Mul(sin, second)),
            b.Add(b.Mul(sin, first), b.Mul(cos, second)),
            axis=-1,
        )
        begins = b.Equal(b.Mod(i, last), 0)
        found = b.Concat(b.Reshape(cosine, [-1]), b.Where(begins, 0.0, worst), axis=0)
        return [b.Gather(turned, seats, axis=-1), b.ReduceMax(found, [0], keepdims=1)]

    def go_on(i: Tensor, carried: list[Tensor]) -> Tensor:
        is_within = b.Less(b.Mod(b.Add(i, 1), last), b.Mod(i, last))
        is_last = b.Or(is_within, b.Equal(last, 1))
        return b.Or(b.Not(is_last), b.Greater(carried[1], tolerance))

    worst = b.full([1], 0, columns.dtype)
    most = b.Mul(last, _MOST_SWEEPS)
    # After whole sweeps every column is back at its seat.
    final = repeat(b, most, [table, worst], step, go_on)[0]
    return b.with_shape(b.slice(final, -1, 0, n), [*batch, rows, n])


def _padded(b: Builder, columns: Tensor, count: Dim) -> Tensor:
    """With a column of zeros where their number is odd."""
    *batch, rows, n = b.dims(columns)
    if count == n:
        return columns
    if isinstance(count, int):
        padded = b.Concat(columns, b.full([*batch, rows, 1], 0, columns.dtype), axis=-1)
    else:
        missing = b.Sub(b.size(count), b.size(n))
        padded = b.Pad(columns, b.Concat(b.const([0]), missing, axis=0), None, b.const([-1]))
    return b.with_shape(padded, [*batch, rows, count])


def _next_seats(b: Builder, places: Tensor, half: Tensor) -> Tensor:
    """From which place each takes its column. Pairs face each other: j and half + j."""
    to_right = b.Sub(places, 1)
    to_left = b.Add(places, 1)
    top = b.Where(b.Equal(places, 0), 0, b.Where(b.Equal(places, 1), half, to_right))
    ends = b.Equal(to_left, b.Add(half, half))
    bottom = b.Where(ends, b.Sub(half, 1), to_left)
    seats = b.Where(b.Less(places, half), top, bottom)
    return b.Where(b.Equal(half, 1), places, seats)
