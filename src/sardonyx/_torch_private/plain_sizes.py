"""The sizes of tensors while a model is traced, as Python's numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from sardonyx._torch_private.transforms import is_transformed

_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)


@contextlib.contextmanager
def sizes_as_numbers(is_fixed: Callable[[torch.Tensor], bool]) -> Iterator[None]:
    """`Tensor.size` and `Tensor.shape` give the numbers that they give without a tracer, of tensors
    whose size is fixed. The tracer would give a tensor for each, and record how it was computed."""
    tensor_type: Any = torch.Tensor
    base: Any = torch._C.TensorBase
    tensor_type.size = _plain(base.size, is_fixed)
    tensor_type.shape = property(_plain(base.shape.__get__, is_fixed))
    try:
        yield
    finally:
        del tensor_type.size, tensor_type.shape


def _plain(ask: Callable[..., Any], is_fixed: Callable[[torch.Tensor], bool]) -> Callable[..., Any]:
    def asked(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
        state = torch._C._get_tracing_state()
        if (
            state is None
            or type(tensor) not in _PLAIN_TYPES
            or is_transformed(tensor)
            or not is_fixed(tensor)
        ):
            return ask(tensor, *args, **options)
        torch._C._set_tracing_state(None)  # type: ignore[attr-defined]
        try:
            with torch._C.DisableTorchFunction():
                return ask(tensor, *args, **options)
        finally:
            torch._C._set_tracing_state(state)  # type: ignore[attr-defined]

    return asked
