"""Operators, and the kernels that PyTorch has for them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch

OpOverload: TypeAlias = torch._ops.OpOverload
PAD_PACKED_SEQUENCE: Any = torch._VF._pad_packed_sequence
"""What torch.nn.utils.rnn.pad_packed_sequence calls."""


def schema_arguments(op: Any, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by name as (args, kwargs) of a call."""
    parameters = op._schema.arguments
    args = [arguments[p.name] for p in parameters if not p.kwarg_only]
    return args, {p.name: arguments[p.name] for p in parameters if p.kwarg_only}


def higher_order_name(target: Any) -> str:
    return str(getattr(target, "_name", "") or getattr(target, "__name__", ""))


def quantized_tensor(
    integers: torch.Tensor, scale: Any, zero_point: Any, axis: int | None = None
) -> torch.Tensor:
    """A quantized tensor with one grid, or with one for each channel along an axis."""
    if axis is None:
        return torch._make_per_tensor_quantized_tensor(integers, float(scale), int(zero_point))
    return torch._make_per_channel_quantized_tensor(integers, scale, zero_point, axis)


def set_decomposition(op: Any, function: Callable[..., Any]) -> None:
    """Decomposes an operator into what `function` calls."""
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

    Only when it is needed: the import is slow.
    """
    importlib.import_module("torch.ao.quantization.fx._decomposed")
