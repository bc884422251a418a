"""Distances and similarities between vectors."""

from __future__ import annotations

import math

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.reductions import reduce_dims, vector_norm
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor

_BY_PRODUCT_IF_LARGE, _BY_PRODUCT, _BY_DIFFERENCE = 0, 1, 2
_LARGE = 25
"""From this many rows on, ATen computes Euclidean distances by a matrix product."""


@lowering("aten::cdist", "aten::_cdist_forward")
def cdist(
    b: Builder, x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: int | None = None
) -> Tensor:
    large = any((x.static_dim(-2) or 0) > _LARGE for x in (x1, x2))
    mode = _BY_PRODUCT_IF_LARGE if compute_mode is None else compute_mode
    if p == 2 and (mode == _BY_PRODUCT or (mode == _BY_PRODUCT_IF_LARGE and large)):
        return euclidean_dist(b, x1, x2)
    difference = b.Sub(b.unsqueeze(x1, [-2]), b.unsqueeze(x2, [-3]))
    distance = vector_norm(b, difference, p, -1)
    if p == math.inf and x1.static_dim(-1) is None:
        distance = b.Max(distance, 0)  # the largest of no differences
    return distance


@lowering("aten::_euclidean_dist")
def euclidean_dist(b: Builder, x1: Tensor, x2: Tensor) -> Tensor:
    """sqrt(|x|^2 - 2xy + |y|^2)."""
    of_rows = reduce_dims(b, "ReduceSumSquare", x1, -1, keepdim=True)
    of_columns = b.unsqueeze(reduce_dims(b, "ReduceSumSquare", x2, -1), [-2])
    swapped = [*range(x2.rank - 2), x2.rank - 1, x2.rank - 2]
    product = b.MatMul(b.Mul(x1, -2), b.transpose(x2, swapped))
    squares = b.Add(b.Add(of_rows, product), of_columns)
    return b.Sqrt(b.Max(squares, 0))


@lowering("aten::pdist", "aten::_pdist_forward")
def pdist(b: Builder, self: Tensor, p: float = 2.0) -> Tensor:
    rows = self.static_dim(0)
    if rows is None:
        raise b.refuse("the number of rows must be known at export time")
    first, second = torch.triu_indices(rows, rows, offset=1)
    difference = b.Sub(b.Gather(self, first, axis=0), b.Gather(self, second, axis=0))
    return vector_norm(b, difference, p, -1)
