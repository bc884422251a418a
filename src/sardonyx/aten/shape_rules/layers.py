"""The shapes of what layers give whose own kernels look at sizes, which data may decide."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from sardonyx import _torch_private

aten = torch.ops.aten


def kernel_for(*tensors: torch.Tensor) -> contextlib.AbstractContextManager[Any]:
    """The kernel of attention that takes tensors of these sizes. To choose among them PyTorch asks
    whether sizes are 0; the plain kernel takes any."""
    is_open = any(map(_torch_private.is_decided_by_data, (n for t in tensors for n in t.shape)))
    return sdpa_kernel(SDPBackend.MATH) if is_open else contextlib.nullcontext()


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *arguments: Any, **options: Any
) -> torch.Tensor:
    with kernel_for(query, key, value):
        attended: torch.Tensor = aten.scaled_dot_product_attention.default(
            query, key, value, *arguments, **options
        )
    return attended


def _convolution(*arguments: Any) -> Any:
    """Without the last arguments, switches by which a kernel looks for a backend."""
    return aten.convolution.default(*arguments[:9])


def _like_input(input: torch.Tensor, *arguments: Any) -> torch.Tensor:
    return torch.empty_like(input)


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.scaled_dot_product_attention.default: _attention,
    aten._convolution.default: _convolution,
    aten._convolution.deprecated: _convolution,
    aten.batch_norm.default: _like_input,
    aten.group_norm.default: _like_input,
}
