"""What PyTorch logs, and the flags and modes that are set while a model is exported."""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch.utils import _python_dispatch

_T = TypeVar("_T")


@contextlib.contextmanager
def attributes_set(owner: Any, **values: Any) -> Iterator[None]:
    """Gives attributes other values, and the ones that they had afterwards."""
    before = {name: getattr(owner, name) for name in values}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


@contextlib.contextmanager
def variable_set(variable: ContextVar[_T], value: _T) -> Iterator[None]:
    """The same for a context variable."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def in_onnx_export() -> contextlib.AbstractContextManager[None]:
    """Raise the flag that model code reads as `torch.onnx.is_in_onnx_export()`."""
    return attributes_set(_export_flags(), in_onnx_export=True)


def is_in_onnx_export() -> bool:
    return bool(_export_flags().in_onnx_export)


def _export_flags() -> Any:
    from torch.onnx._internal.torchscript_exporter._globals import GLOBALS

    return GLOBALS


@contextlib.contextmanager
def quiet_loggers() -> Iterator[None]:
    """Keeps from the user what torch logs of a failed attempt: it is answered, or our own error."""
    names = (
        "torch._subclasses.fake_tensor",
        "torch.export._trace",
        "torch.fx.experimental.symbolic_shapes",
    )
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


@contextlib.contextmanager
def modes_restored() -> Iterator[None]:
    """Leaves the modes of this thread as they were: an interrupt between two lines of a mode's
    `__exit__` would keep it active."""
    gradients, functions, before = torch.is_grad_enabled(), _function_modes(), _dispatch_modes()
    flags = {name: value for name, value in vars(_python_dispatch).items() if name in _MODE_FLAGS}
    try:
        yield
    finally:
        for _ in range(_function_modes() - functions):
            torch._C._pop_torch_function_stack()
        for mode in reversed(_dispatch_modes()):
            if not any(mode is other for other in before):
                torch._C._pop_torch_dispatch_stack(getattr(mode, "_mode_key", None))
        vars(_python_dispatch).update(flags)
        if (set_flag := getattr(_python_dispatch, _DYNAMO_SETTER, None)) is not None:
            set_flag(flags[_DYNAMO_FLAG])
        torch._C._set_grad_enabled(gradients)


_DYNAMO_FLAG = "_is_in_any_mode_without_ignore_compile_internals"
_DYNAMO_SETTER = "set_is_in_mode_without_ignore_compile_internals"
_MODE_FLAGS = (
    "_is_in_torch_dispatch_mode",
    "_is_in_non_infra_torch_dispatch_mode",
    _DYNAMO_FLAG,
)


def _function_modes() -> int:
    return torch._C._len_torch_function_stack()


def _dispatch_modes() -> list[Any]:
    count = torch._C._len_torch_dispatch_stack()
    return [torch._C._get_dispatch_stack_at(index) for index in range(count)]


def rival_exporter() -> Any:
    """The module whose names `sardonyx.install()` takes over; nothing in it is called."""
    return importlib.import_module("torch.onnx")
