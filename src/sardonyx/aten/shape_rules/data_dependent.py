"""Results whose sizes, or whose places in memory, are decided by data."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import torch

from sardonyx import _torch_private

aten = torch.ops.aten
Size = int | torch.SymInt


def _combinations(self: torch.Tensor, r: int = 2, with_replacement: bool = False) -> torch.Tensor:
    if r == 0:
        return self.new_empty([0])
    size: Size = self.shape[0]
    if isinstance(size, int):
        ways: Size = comb(size + r - 1 if with_replacement else size, r)
    else:
        ways = _torch_private.new_data_dependent_size_of(self)
    return self.new_empty([ways, r])


def _narrow(self: torch.Tensor, dim: int, start: torch.Tensor, length: Size) -> torch.Tensor:
    # Where in memory it starts is known at run time alone.
    sizes: list[Size] = list(self.shape)
    sizes[dim] = length
    return self.as_strided(sizes, self.stride(), self.storage_offset())


def _one_hot(self: torch.Tensor, num_classes: Size = -1) -> torch.Tensor:
    if isinstance(num_classes, int) and num_classes == -1:
        num_classes = _torch_private.new_data_dependent_size_of(self)
    return self.new_empty([*self.shape, num_classes])


def _reshape_from_tensor(self: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    sizes = [_torch_private.new_data_dependent_size_of(self) for _ in range(shape.shape[0])]
    made = self.new_empty(sizes)
    # A view of memory without gaps whatever the sizes are; of other memory it may be a copy.
    return self.as_strided(sizes, made.stride()) if self.is_contiguous() else made


def _stored_values(self: torch.Tensor) -> torch.Tensor:
    count = _torch_private.new_data_dependent_size_of(self)
    return torch.empty([count], dtype=self.dtype, device=self.device)


def _stored_indices(self: torch.Tensor) -> torch.Tensor:
    count = _torch_private.new_data_dependent_size_of(self)
    return torch.empty([self.dim(), count], dtype=torch.int64, device=self.device)


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.combinations.default: _combinations,
    aten.indices.default: _stored_indices,
    aten.narrow.Tensor: _narrow,
    aten.one_hot.default: _one_hot,
    aten._reshape_from_tensor.default: _reshape_from_tensor,
    aten.values.default: _stored_values,
}
