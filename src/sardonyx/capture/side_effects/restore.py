"""Export is pure: what a capture may touch, put back as it was."""

from __future__ import annotations

import contextlib
import contextvars
import random
import sys
import warnings
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any

import numpy
import torch

from sardonyx import _torch_private
from sardonyx.aten.location import innermost_user_place
from sardonyx.aten.module_tree import modules_of, named_parameters, weights_of
from sardonyx.capture.function_overrides.function_mode import FunctionOverride
from sardonyx.capture.side_effects.python_state import PythonState
from sardonyx.capture.side_effects.tensor_state import BeforeWrites
from sardonyx.errors import FinalCaptureError
from sardonyx.notes import error_at
from sardonyx.options import TrainingMode


@contextlib.contextmanager
def model_mode(model: Any, training: TrainingMode) -> Iterator[None]:
    """The model in the requested mode, put back afterwards.

    A model whose classes override `train()` or `eval()` is set by these, or left as it is where it
    is in that mode. Modules that it only refers to, in a plain list or as a variable of a function,
    must be in that mode themselves: `check_mode` refuses others when they are called."""
    if training is TrainingMode.PRESERVE:
        yield
        return
    wanted = training is TrainingMode.TRAINING
    owner: Any = model.__self__ if isinstance(model, MethodType) else model
    modules = modules_of(owner)
    overrides = any(map(_overrides_mode, modules))
    with contextlib.ExitStack() as restored:
        if overrides and owner.training != wanted:
            restored.enter_context(_mode_set_by(owner, wanted))
        before = [(module, getattr(module, "training", wanted)) for module in modules]
        restored.callback(_set_modes, before)
        restored.enter_context(_torch_private.variable_set(_mode_wanted, wanted))
        if not overrides or owner.training != wanted:
            _set_modes((module, wanted) for module in modules)
        yield


def _overrides_mode(module: torch.nn.Module) -> bool:
    kind = type(module)
    is_plain = kind.train is torch.nn.Module.train and kind.eval is torch.nn.Module.eval
    return not is_plain and not isinstance(module, torch.jit.ScriptModule)


@contextlib.contextmanager
def _mode_set_by(model: torch.nn.Module, wanted: bool) -> Iterator[None]:
    """Calls the model's own `train()` or `eval()` and undoes it. One that raises, as those of
    exported programs do, leaves the mode to us. One that writes the weights, as adapters do that
    merge theirs, has to be called by the user: the file is written from the model's memory."""
    state, writes = PythonState(model), BeforeWrites(model)
    call = "train" if wanted else "eval"
    try:
        with contextlib.suppress(Exception), writes:
            getattr(model, call)()
        if writes.changed():
            raise FinalCaptureError(
                f"{type(model).__qualname__}.{call}() changes the weights of the model: call"
                f" model.{call}() before the export"
            )
        yield
    finally:
        state.restore()
        writes.restore()


def _set_modes(modes: Iterable[tuple[torch.nn.Module, bool]]) -> None:
    for module, mode in modes:
        if hasattr(module, "training"):  # a frozen script has none
            module.training = mode


_mode_wanted: contextvars.ContextVar[bool | None] = contextvars.ContextVar(
    "mode_wanted", default=None
)


def check_mode(module: torch.nn.Module) -> None:
    """A module that the model calls without holding a reference must be in the requested mode, if
    its code reads the mode."""
    wanted = _mode_wanted.get()
    if wanted is None or module.training == wanted or not _asks_for_mode(type(module)):
        return
    mode = "training" if wanted else "evaluation"
    call = "train" if wanted else "eval"
    raise error_at(
        FinalCaptureError,
        innermost_user_place(sys._getframe(1)),
        f"the model calls a {type(module).__qualname__} that is not one of its modules, and that is"
        f" not in {mode} mode",
        [f"its .{call}() before the call", "or make it an attribute of the model"],
    )


def _asks_for_mode(kind: type[torch.nn.Module]) -> bool:
    functions = (
        function
        for base in kind.__mro__[: kind.__mro__.index(torch.nn.Module)]
        for function in vars(base).values()
    )
    return any("training" in f.__code__.co_names for f in functions if isinstance(f, FunctionType))


@contextlib.contextmanager
def undisturbed(model: Any) -> Iterator[None]:
    """Runs the body without gradients and without the fused paths of torch.nn; the model, random
    numbers and global flags are afterwards as before."""
    devices = sorted({t.device.index or 0 for t in weights_of(model) if t.device.type == "cuda"})
    with (
        torch.random.fork_rng(devices),
        torch.inference_mode(False),
        torch.no_grad(),
        _torch_private.in_onnx_export(),
        _torch_private.transforms_exited(),
        _torch_private.quiet_loggers(),
        warnings.catch_warnings(),
        without_fast_path(),
        _deeper_recursion(),
        _global_state_restored(),
        gradients_restored(model),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def without_fast_path() -> Iterator[None]:
    """The transformer layers of torch.nn without their fused path, which leaves other numbers where
    a padding mask hides a position."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


@contextlib.contextmanager
def _deeper_recursion() -> Iterator[None]:
    """Twice as deep: the call of a module takes more frames where it is recorded."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(2 * limit)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@contextlib.contextmanager
def _global_state_restored() -> Iterator[None]:
    dtype = torch.get_default_dtype()
    of_python, of_numpy = random.getstate(), numpy.random.get_state()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        random.setstate(of_python)
        numpy.random.set_state(of_numpy)


@contextlib.contextmanager
def gradients_restored(model: Any) -> Iterator[None]:
    """Which parameters require gradients, and which they have."""
    before = [(p, p.requires_grad, p.grad) for _, p in named_parameters(model)]
    try:
        yield
    finally:
        for parameter, flag, gradient in before:
            if parameter.requires_grad != flag:
                parameter.requires_grad_(flag)
            if parameter.grad is not gradient:
                parameter.grad = gradient


def version_of(tensor: torch.Tensor) -> int:
    """How often a tensor was written; tensors made in inference mode do not count."""
    return 0 if tensor.is_inference() else tensor._version


class DataAttributeOverride(FunctionOverride):
    """`x.data` recorded as `x.detach()`, where a capture would see a constant, and `x.data = y` as
    `x.set_(y)`."""

    def applies(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return func in (_READ_DATA, _SET_DATA)

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func == _READ_DATA:
            return args[0].detach()
        return torch.ops.aten.set_.source_Tensor(args[0], args[1])


_READ_DATA = torch.Tensor.data.__get__  # type: ignore[attr-defined]
_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]
