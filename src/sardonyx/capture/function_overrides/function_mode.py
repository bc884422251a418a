"""Functions of PyTorch that are overridden while a model is recorded."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from sardonyx import _torch_private


class FunctionOverride(abc.ABC):
    """Runs some calls in another way."""

    @abc.abstractmethod
    def applies(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether it may do anything else than run the call."""

    @abc.abstractmethod
    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


class FunctionOverrides(TorchFunctionMode):
    """Several overrides in one mode: the last that applies runs a call, and the calls that it makes
    see the overrides before it. Most calls have none."""

    def __init__(self, overrides: Sequence[FunctionOverride]) -> None:
        super().__init__()
        self.autocast: tuple[str, ...] = ()
        """The devices that autocast is on for where the last call was made."""
        self._overrides = overrides
        self._inner: dict[int, FunctionOverrides] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_dynamo_compiling():  # a part that is seen when it runs
            return func(*args, **kwargs)
        if _torch_private.run_their_own_functions(types):
            return NotImplemented  # its own code runs next, under this mode
        self.autocast = _torch_private.autocast_devices()
        for index in reversed(range(len(self._overrides))):
            if self._overrides[index].applies(func, args, kwargs):
                with self._before(index):
                    result = self._overrides[index].call(func, args, kwargs)
                return _torch_private.as_model_number(result)
        return _torch_private.as_model_number(func(*args, **kwargs))

    def _before(self, index: int) -> FunctionOverrides:
        if index not in self._inner:
            self._inner[index] = FunctionOverrides(self._overrides[:index])
        return self._inner[index]


def addresses(tensors: Iterable[torch.Tensor]) -> set[int]:
    return {_torch_private.memory_address(tensor) for tensor in tensors} - {0}
