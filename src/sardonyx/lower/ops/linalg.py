"""Linear algebra beyond products."""

from __future__ import annotations

import torch

from sardonyx.lower import promote
from sardonyx.lower.builder import Builder
from sardonyx.lower.contraction import diagonal
from sardonyx.lower.reductions import accumulate
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("aten::trace")
def trace(b: Builder, self: Tensor) -> Tensor:
    x = b.cast(self, promote.sum_dtype(self.dtype))
    rows, columns = b.dims(x)
    if rows != columns:
        if not (isinstance(rows, int) and isinstance(columns, int)):
            raise b.refuse("the matrix is not known to be square")
        shorter = min(rows, columns)
        x = b.slice(b.slice(x, 0, 0, shorter), 1, 0, shorter)
    return accumulate(b, "ReduceSum", diagonal(b, x, 0, 1), 0)


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
        result: Tensor = b.Gather(x, torch.tensor(order), axis=axis)
        return result

    forward, backward = [1, 2, 0], [2, 0, 1]
    result: Tensor = b.Sub(
        b.Mul(turned(left, forward), turned(right, backward)),
        b.Mul(turned(left, backward), turned(right, forward)),
    )
    return result
