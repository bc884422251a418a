"""The length of what pooling gives, whose kernel for one dim turns sizes into numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_min: Callable[[Any, Any], Any] = torch.sym_min


def _max_pool1d(
    self: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
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


SHAPE_RULES: dict[Any, Callable[..., Any]] = {torch.ops.aten.max_pool1d.default: _max_pool1d}
