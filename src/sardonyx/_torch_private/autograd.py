"""Autograd functions, and the transforms of torch.func: grad, vmap, jvp."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch.autograd import forward_ad


@contextlib.contextmanager
def calls_left_to_run(kinds: Collection[type]) -> Iterator[None]:
    """Where torch.export compiles Python (strict mode, branches of torch.cond), calls of these
    `torch.autograd.Function`s are not compiled."""
    if not kinds:
        yield
        return
    rules: Any = importlib.import_module("torch._dynamo.trace_rules")
    allowed = rules._allowed_callable_ids
    added = [id(kind) for kind in kinds if id(kind) not in allowed]
    for number in added:
        allowed.add(number)
    try:
        yield
    finally:
        for number in added:
            allowed.remove(number)


def autograd_function_of(node: Any) -> Any:
    """The class of the `torch.autograd.Function` that a node of TorchScript calls, or None."""
    kind = getattr(node.pyobj(), "__self__", None)
    is_class = isinstance(kind, type) and issubclass(kind, torch.autograd.Function)
    return kind if is_class else None


def has_setup_context(kind: Any) -> bool:
    """Whether the `forward` of a torch.autograd.Function takes no `ctx`."""
    is_defined: Any = torch.autograd.function._is_setup_context_defined
    return bool(is_defined(kind.setup_context))


@contextlib.contextmanager
def transforms_exited() -> Iterator[None]:
    """Exits transforms that a failing model left entered: all that runs later in the process would
    be transformed."""
    functorch: Any = torch._C._functorch
    before = functorch.maybe_current_level() or 0
    dual_before = forward_ad._current_level
    try:
        yield
    finally:
        if (functorch.maybe_current_level() or 0) > before:
            while (functorch.maybe_current_level() or 0) > before:
                functorch.pop_dynamic_layer_stack()
            if dual_before < 0:
                forward_ad._current_level = -1
                with contextlib.suppress(RuntimeError):  # where none of it was for jvp
                    torch._C._exit_dual_level(level=0)


def is_transformed(tensor: torch.Tensor) -> bool:
    """Whether it is a tensor inside a transform, around another one."""
    functorch: Any = torch._C._functorch
    return bool(functorch.is_functorch_wrapped_tensor(tensor))
