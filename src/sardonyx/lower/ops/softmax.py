"""Softmax and its logarithm."""

from __future__ import annotations

import math

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.reductions import reduce_dims
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("aten::softmax.int", "aten::special_softmax", "aten::_softmax", op="Softmax")
@lowering(
    "aten::log_softmax.int", "aten::special_log_softmax", "aten::_log_softmax", op="LogSoftmax"
)
def softmax(
    b: Builder,
    self: Tensor,
    dim: int,
    dtype: torch.dtype | None = None,
    half_to_float: bool = False,
    *,
    op: str,
) -> Tensor:
    x = b.cast(self, torch.float32 if half_to_float else dtype)
    if x.rank == 0:
        return b.squeeze(b.op(op, b.unsqueeze(x, [0]), axis=0), [0])
    return b.op(op, x, axis=dim % x.rank if dim != -1 else -1)


@lowering("aten::_safe_softmax")
def safe_softmax(b: Builder, self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    x = b.cast(self, dtype)
    # Where everything is masked the weights are 0, not NaN.
    masked = b.Equal(reduce_dims(b, "ReduceMax", x, dim, keepdim=True), -math.inf)
    return b.Where(masked, b.scalar(0, x.dtype), softmax(b, x, dim, op="Softmax"))
