"""The functions of PyTorch that a recorded model calls, some of them made in another way."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from sardonyx import _torch_private


class ReplacedCalls(abc.ABC):
    """Makes some calls in another way."""

    @abc.abstractmethod
    def replaces(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether it may do anything else than make the call."""

    @abc.abstractmethod
    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


class ModelCalls(TorchFunctionMode):
    """Asks the last of several for each call first; the calls that it makes instead are those of
    the ones before it. One mode in the place of several: most calls are replaced by none."""

    def __init__(self, replaced: Sequence[ReplacedCalls]) -> None:
        super().__init__()
        self.autocast: tuple[str, ...] = ()
        """The devices that autocast is on for where the last call was made."""
        self._replaced = replaced
        self._inner: dict[int, ModelCalls] = {}

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_dynamo_compiling():  # a part that is seen when it runs
            return func(*args, **kwargs)
        self.autocast = _torch_private.autocast_devices()
        for index in reversed(range(len(self._replaced))):
            if self._replaced[index].replaces(func, args, kwargs):
                with self._before(index):
                    result = self._replaced[index].call(func, args, kwargs)
                return _torch_private.as_model_number(result)
        return _torch_private.as_model_number(func(*args, **kwargs))

    def _before(self, index: int) -> ModelCalls:
        if index not in self._inner:
            self._inner[index] = ModelCalls(self._replaced[:index])
        return self._inner[index]


def addresses(tensors: Iterable[torch.Tensor]) -> set[int]:
    return {_torch_private.memory_address(tensor) for tensor in tensors} - {0}
