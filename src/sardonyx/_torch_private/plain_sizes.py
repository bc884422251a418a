"""The sizes of tensors while a model is traced, as Python's numbers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import handle_torch_function, has_torch_function_unary

from sardonyx._torch_private.transforms import is_transformed

_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)


@contextlib.contextmanager
def sizes_as_numbers(is_fixed: Callable[[torch.Tensor], bool]) -> Iterator[None]:
    """`Tensor.size` and `Tensor.shape` give the numbers that they give without a tracer, of tensors
    whose size is fixed. The tracer would give a tensor for each, and record how it was computed.

    One mode for calls may be entered in the body that sees nothing of these questions; where
    another is entered, or another thread asks, they are as they were."""
    tensor_type: Any = torch.Tensor
    questions = _Questions(is_fixed)
    with contextlib.ExitStack() as restored:
        for name in ("size", "shape"):
            restored.callback(_restore, name, vars(torch.Tensor).get(name))
        size, shape = tensor_type.size, tensor_type.shape.__get__
        tensor_type.size = questions.answered(size)
        tensor_type.shape = property(questions.answered(shape))
        yield


def _restore(name: str, own: Any) -> None:
    if own is not None:
        setattr(torch.Tensor, name, own)
    elif name in vars(torch.Tensor):
        delattr(torch.Tensor, name)


class _Questions:
    def __init__(self, is_fixed: Callable[[torch.Tensor], bool]) -> None:
        self._is_fixed = is_fixed
        self._thread = threading.get_ident()
        self._modes = _mode_count()

    def answered(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
            state = torch._C._get_tracing_state()
            if state is not None and self._has_numbers(tensor):
                torch._C._set_tracing_state(None)  # type: ignore[attr-defined]
                try:
                    with torch._C.DisableTorchFunction():
                        return ask(tensor, *args, **options)
                finally:
                    torch._C._set_tracing_state(state)  # type: ignore[attr-defined]
            if has_torch_function_unary(tensor):
                # PyTorch itself would tell modes of the function that stands here now.
                return handle_torch_function(ask, (tensor,), tensor, *args, **options)
            return ask(tensor, *args, **options)

        return asked

    def _has_numbers(self, tensor: torch.Tensor) -> bool:
        return (
            type(tensor) in _PLAIN_TYPES
            and threading.get_ident() == self._thread
            and _mode_count() <= self._modes + 1
            and not is_transformed(tensor)
            and self._is_fixed(tensor)
        )


def _mode_count() -> int:
    return torch._C._len_torch_function_stack()
