"""Embedding bags, the sums, means or maxima of the embeddings in each bag; tables within a norm."""

from __future__ import annotations

import math

import torch

from sardonyx.aten.graph import Dim
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.reductions import vector_norm
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor

_SUM, _MEAN, _MAX = 0, 1, 2


@lowering("aten::embedding_bag", "aten::_embedding_bag", "aten::_embedding_bag_forward_only")
def embedding_bag(
    b: Builder,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, None, None, None]:
    """The bags; what else ATen returns serves the backward pass and is not computed."""
    offsets = b.cast(offsets, torch.int64)
    bags = offsets.dim(0) - 1 if include_last_offset else offsets.dim(0)
    if include_last_offset:
        offsets = b.with_shape(b.slice(offsets, 0, 0, -1), [bags])
    bag_of = b.unsqueeze(_bag_of_each(b, indices, offsets), [1])
    rows = b.Gather(weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = b.Mul(rows, b.unsqueeze(per_sample_weights, [1]))
    counted = b.full([indices.dim(0), 1], 1, rows.dtype)
    if padding_idx >= 0:
        padding = b.unsqueeze(b.Equal(indices, padding_idx), [1])
        nothing = b.scalar(-math.inf if mode == _MAX else 0, rows.dtype)
        rows = b.Where(padding, nothing, rows)
        counted = b.Where(padding, b.scalar(0, rows.dtype), counted)
    size = weight.dim(1)
    if mode == _MAX:
        lowest = b.full([bags, size], -math.inf, rows.dtype)
        largest = b.ScatterND(lowest, bag_of, rows, reduction="max")
        # An empty bag is 0.
        empty = b.Equal(_sums(b, counted, bag_of, bags, 1), 0)
        return b.Where(empty, b.scalar(0, rows.dtype), largest), None, None, None
    total = _sums(b, rows, bag_of, bags, size)
    if mode == _MEAN:
        total = b.Div(total, b.Max(_sums(b, counted, bag_of, bags, 1), 1))
    return total, None, None, None


def _bag_of_each(b: Builder, indices: Tensor, offsets: Tensor) -> Tensor:
    """The bag of each index: how many bags have begun by then, less one."""
    # One place more than there are indices, for empty bags at the end.
    places = b.full([indices.dim(0) + 1], 0, torch.int64)
    ones = b.full([offsets.dim(0)], 1, torch.int64)
    begun = b.ScatterElements(places, offsets, ones, axis=0, reduction="add")
    before = b.slice(b.CumSum(begun, b.scalar(0, torch.int64)), 0, 0, -1)
    return b.with_shape(b.Sub(before, 1), [indices.dim(0)])


def _sums(b: Builder, rows: Tensor, bag_of: Tensor, bags: Dim, size: Dim) -> Tensor:
    return b.ScatterND(b.full([bags, size], 0, rows.dtype), bag_of, rows, reduction="add")


@lowering("aten::embedding_renorm")
def embedding_renorm(
    b: Builder, self: Tensor, indices: Tensor, max_norm: float, norm_type: float
) -> Tensor:
    """The table, with those of the rows that `indices` names shortened which are too long."""
    named = b.reshape(b.cast(indices, torch.int64), [b.numel(indices)])
    rows = b.Gather(self, named, axis=0)
    norm = vector_norm(b, rows, norm_type, 1, keepdim=True)
    shorter = b.Mul(rows, b.Div(b.scalar(max_norm, self.dtype), b.Add(norm, 1e-7)))
    kept = b.Where(b.Greater(norm, max_norm), shorter, rows)
    return b.ScatterND(self, b.unsqueeze(named, [1]), kept)
