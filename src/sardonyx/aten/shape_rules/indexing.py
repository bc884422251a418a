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


def _index(self: torch.Tensor, indices: list[torch.Tensor | None]) -> torch.Tensor:
    # Beside a mask, PyTorch loses the elements that an index without dims is broadcast to.
    has_mask = any(i is not None and i.dtype in _MASKS and i.dim() for i in indices)
    given = [
        i.reshape(1) if has_mask and i is not None and not i.dim() and i.dtype not in _MASKS else i
        for i in indices
    ]
    indexed: torch.Tensor = torch.ops.aten.index.Tensor(self, given)
    return indexed


_MASKS = (torch.bool, torch.uint8)

SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.index.Tensor: _index,
    torch.ops.aten.take_along_dim.default: _take_along_dim,
}
