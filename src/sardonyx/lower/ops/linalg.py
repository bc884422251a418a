"""Linear algebra beyond products."""

from __future__ import annotations

import math

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import whole_like
from sardonyx.lower.kernels.loops import repeat
from sardonyx.lower.kernels.matrices import identity
from sardonyx.lower.kernels.reductions import accumulate, reduce_dims
from sardonyx.lower.ops.view import matrices_flat
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor

_TERMS = 18
"""Of the exponential series: what follows is less than an ulp where the norm is 1."""
_MOST_SQUARINGS = 1100


@lowering("aten::trace")
def trace(b: Builder, self: Tensor) -> Tensor:
    x = b.cast(self, type_promotion.sum_dtype(self.dtype))
    flat, positions = matrices_flat(b, x, 0, 0, 1)
    return accumulate(b, "ReduceSum", b.Gather(flat, positions, axis=-1), 0)


@lowering("aten::linalg_cross", "aten::cross")
def linalg_cross(b: Builder, self: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    left, right = b.promote(self, other)
    rank = max(left.rank, right.rank)
    if dim is None:  # the first dim of size 3
        sizes = b.broadcast_shape(left, right) or ()
        if 3 not in sizes:
            raise b.refuse("no dim is known to be of size 3")
        dim = sizes.index(3)
    axis = dim % rank - rank

    def turned(x: Tensor, order: list[int]) -> Tensor:
        return b.Gather(x, torch.tensor(order), axis=axis)

    forward, backward = [1, 2, 0], [2, 0, 1]
    return b.Sub(
        b.Mul(turned(left, forward), turned(right, backward)),
        b.Mul(turned(left, backward), turned(right, forward)),
    )


@lowering("aten::linalg_matrix_exp")
def linalg_matrix_exp(b: Builder, self: Tensor) -> Tensor:
    """exp(A) = exp(A / 2^s)^(2^s), with s so large that the series converges fast."""
    one = identity(b, self.dim(-1), self.dtype)
    norm = reduce_dims(b, "ReduceMax", reduce_dims(b, "ReduceL1", self, -2, True), -1, True)
    doublings = b.Div(b.Log(b.Max(norm, 1.0)), math.log(2.0))
    squarings = b.Min(b.Ceil(doublings), float(_MOST_SQUARINGS))
    scaled = b.Div(self, b.Pow(b.scalar(2, self.dtype), squarings))
    last = b.scalar(_TERMS, self.dtype)

    def term(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        number = b.Sub(last, b.cast(i, self.dtype))
        return [b.Add(one, b.Div(b.MatMul(scaled, carried[0]), number))]

    def square(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        (x,) = carried
        return [b.Where(b.Less(b.cast(i, self.dtype), squarings), b.MatMul(x, x), x)]

    (series,) = repeat(b, _TERMS, [whole_like(b, b.expand(one, b.dims(self)), self)], term)
    every = b.Concat(b.Reshape(squarings, [-1]), b.const(torch.zeros(1, dtype=norm.dtype)), axis=0)
    most = b.cast(b.ReduceMax(every, [0], keepdims=0), torch.int64)
    return repeat(b, most, [series], square)[0]
