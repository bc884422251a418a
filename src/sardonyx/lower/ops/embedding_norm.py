"""Embeddings kept within a norm: what `max_norm` does to a table before it is read."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.reductions import vector_norm
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


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
