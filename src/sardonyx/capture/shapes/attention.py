"""Attention over sizes that data decides. To choose among its kernels PyTorch asks whether they
are 0; the plain kernel takes any."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from sardonyx import _torch_private

aten = torch.ops.aten


def kernel_for(*tensors: torch.Tensor) -> contextlib.AbstractContextManager[Any]:
    """The kernel that takes tensors of these sizes."""
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


SHAPE_RULES: dict[Any, Callable[..., Any]] = {aten.scaled_dot_product_attention.default: _attention}
