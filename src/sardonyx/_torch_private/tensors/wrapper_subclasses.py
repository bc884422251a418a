"""Tensor subclasses that wrap other tensors, as the quantized weights of torchao do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch


def is_wrapper_class(kind: type) -> bool:
    return issubclass(kind, torch.Tensor) and hasattr(kind, "__tensor_flatten__")


def run_their_own_functions(types: Iterable[type]) -> bool:
    """Whether a `__torch_function__` of theirs gets the call, or is the one that makes it."""
    return torch._C._is_torch_function_enabled() and any(map(is_wrapper_class, types))


def plain_tensors(name: str, tensor: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors with memory of their own that a tensor consists of: itself, or those it wraps."""
    if not is_wrapper_class(type(tensor)):
        yield name, tensor
        return
    for attribute in tensor.__tensor_flatten__()[0]:
        yield from plain_tensors(f"{name}.{attribute}", getattr(tensor, attribute))
