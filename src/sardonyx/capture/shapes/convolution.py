"""The shape of what a traced convolution gives: its own kernel looks for a backend by size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten


def _convolution(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *backend_switches: bool,
) -> Any:
    return aten.convolution.default(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten._convolution.default: _convolution,
    aten._convolution.deprecated: _convolution,
}
