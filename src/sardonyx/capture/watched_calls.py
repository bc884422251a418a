"""The calls that a model makes while it is recorded, seen by one mode in the place of several."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from sardonyx import _torch_private


class Call:
    """A call of a function of PyTorch."""

    __slots__ = ("_new_addresses", "args", "func", "given", "given_addresses", "kwargs", "result")

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.func = func
        self.args = args
        self.kwargs = kwargs
        self.given = list(tensors_in((*args, *kwargs.values())))
        """The tensors among the arguments."""
        self.given_addresses = addresses(self.given)
        self.result: Any = None
        self._new_addresses: set[int] | None = None

    @property
    def name(self) -> str:
        return getattr(self.func, "__name__", "")

    @property
    def new_addresses(self) -> set[int]:
        """Of the memory that the result has and the arguments have not."""
        if self._new_addresses is None:
            self._new_addresses = addresses(tensors_in(self.result)) - self.given_addresses
        return self._new_addresses


class ChangingMode(TorchFunctionMode, abc.ABC):
    """Makes some calls in another way, and the others as they are."""

    @abc.abstractmethod
    def changes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether it may do anything else than make the call."""

    @abc.abstractmethod
    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any: ...


class WatchingMode(TorchFunctionMode, abc.ABC):
    """Makes all calls as they are."""

    @abc.abstractmethod
    def before(self, call: Call) -> None: ...

    @abc.abstractmethod
    def after(self, call: Call) -> None: ...

    def failed(self) -> None:
        """The call raised."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return func(*args, **(kwargs or {}))
        return _watched((self,), func, args, kwargs or {})


class WatchedCalls(TorchFunctionMode):
    """As if the modes were entered in this order. PyTorch asks mode after mode, in Python; most
    calls are such that none changes them, and these it only asks this one for."""

    def __init__(self, modes: Sequence[ChangingMode | WatchingMode]) -> None:
        super().__init__()
        self.autocast: tuple[str, ...] = ()
        """The devices that autocast is on for where the last call was made."""
        self._watching = [mode for mode in reversed(modes) if isinstance(mode, WatchingMode)]
        self._changing = [
            _Changing(mode, [m for m in self._watching if m in modes[index:]], modes[:index])
            for index, mode in reversed(list(enumerate(modes)))
            if isinstance(mode, ChangingMode)
        ]

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
        for changing in self._changing:
            if changing.mode.changes(func, args, kwargs):
                result = _watched(changing.outer, func, args, kwargs, changing)
                return _torch_private.as_model_number(result)
        return _torch_private.as_model_number(_watched(self._watching, func, args, kwargs))


class _Changing:
    """One of several modes that changes calls."""

    __slots__ = ("_inner", "_inner_modes", "mode", "outer")

    def __init__(
        self,
        mode: ChangingMode,
        outer: Sequence[WatchingMode],
        inner: Sequence[ChangingMode | WatchingMode],
    ) -> None:
        self.mode = mode
        self.outer = outer
        """Those that see the call as the model makes it."""
        self._inner_modes = inner
        """Those that see the calls that this one makes of it."""
        self._inner: WatchedCalls | None = None

    def __call__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._inner is None:
            self._inner = WatchedCalls(self._inner_modes)
        with self._inner:
            return self.mode.__torch_function__(func, (), args, kwargs)


def _watched(
    modes: Sequence[WatchingMode],
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    changing: _Changing | None = None,
) -> Any:
    call = Call(func, args, kwargs)
    for mode in modes:
        mode.before(call)
    try:
        call.result = func(*args, **kwargs) if changing is None else changing(func, args, kwargs)
    except BaseException:
        for mode in modes:
            mode.failed()
        raise
    for mode in modes:
        mode.after(call)
    return call.result


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, slice):
        yield from tensors_in((value.start, value.stop, value.step))


def addresses(tensors: Iterable[torch.Tensor]) -> set[int]:
    return {_torch_private.memory_address(tensor) for tensor in tensors} - {0}
