"""The shape of what is gathered along a dim, where PyTorch's own code takes sizes for numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _take_along_dim(
    self: torch.Tensor, indices: torch.Tensor, dim: int | None = None
) -> torch.Tensor:
    if dim is None:
        return self.new_empty([indices.numel()])
    axis = dim % self.dim()
    own, wanted = list(self.shape), list(indices.shape)
    count, own[axis], wanted[axis] = wanted[axis], 1, 1
    sizes = list(torch.broadcast_shapes(own, wanted))  # type: ignore[no-untyped-call]
    sizes[axis] = count
    return self.new_empty(sizes)


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.take_along_dim.default: _take_along_dim,
}
