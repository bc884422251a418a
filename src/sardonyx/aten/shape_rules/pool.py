"""The sizes of what pooling gives, where PyTorch's own code turns them into numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Size = int | torch.SymInt
_min: Callable[[Any, Any], Any] = torch.sym_min


def _max_pool1d(
    self: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> torch.Tensor:
    (step,) = stride or kernel_size
    padded = self.shape[-1] + 2 * padding[0]
    free = padded - dilation[0] * (kernel_size[0] - 1) - 1
    length = free // step + 1
    if ceil_mode:
        # The last window starts within the input or its left padding.
        starts = (self.shape[-1] + padding[0] + step - 1) // step
        length = _min((free + step - 1) // step + 1, starts)
    return self.new_empty([*self.shape[:-1], length])


def _adaptive_max_pool(
    self: torch.Tensor, output_size: Sequence[Size]
) -> tuple[torch.Tensor, torch.Tensor]:
    sizes = [*self.shape[: self.dim() - len(output_size)], *output_size]
    return self.new_empty(sizes), self.new_empty(sizes, dtype=torch.int64)


def _adaptive_avg_pool1d(self: torch.Tensor, output_size: Sequence[Size]) -> torch.Tensor:
    return self.new_empty([*self.shape[:-1], *output_size])


def _fractional_max_pool(
    self: torch.Tensor, kernel_size: Sequence[int], output_size: Sequence[Size], *rest: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    return _adaptive_max_pool(self, output_size)


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.max_pool1d.default: _max_pool1d,
    aten.adaptive_avg_pool1d.default: _adaptive_avg_pool1d,
    aten.adaptive_max_pool1d.default: _adaptive_max_pool,
    aten.adaptive_max_pool2d.default: _adaptive_max_pool,
    aten.adaptive_max_pool3d.default: _adaptive_max_pool,
    aten.fractional_max_pool3d.default: _fractional_max_pool,
}
