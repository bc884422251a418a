"""Operators, and the kernels that PyTorch has for them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

OpOverload: TypeAlias = torch._ops.OpOverload


WITHOUT_TORCH_FUNCTION: Any = torch._C._disabled_torch_function_impl
"""The `__torch_function__` of a class of tensors whose operators give plain tensors."""


def set_decomposition(op: Any, function: Callable[..., Any]) -> None:
    """Lets an operator be expanded into what `function` runs."""
    op.py_impl(torch._C.DispatchKey.CompositeImplicitAutograd)(function)


def is_composite(op: Any) -> bool:
    """Whether an operator is made of others, and so may return its argument or a view of it."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key))


def register_chunked_losses() -> None:
    """Makes torch.ops.torch_nn known, where PyTorch has it: losses computed chunk by chunk."""
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("torch.nn.modules.linear_cross_entropy")


def register_decomposed_quantization() -> None:
    """Makes torch.ops.quantized_decomposed known: quantization with integers and scale apart.

    Not done before it is needed: what PyTorch imports with it takes long.
    """
    importlib.import_module("torch.ao.quantization.fx._decomposed")
