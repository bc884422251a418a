"""Calls of a torch.autograd.Function."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch


@contextlib.contextmanager
def autograd_function_calls(by: Callable[..., Any]) -> Iterator[None]:
    """Every call of a `torch.autograd.Function` is one of `by(apply, class, args, kwargs)`, also
    where `apply` was given another name before."""
    # `Function.apply` looks for the tracked one behind itself, at each call.
    kind: Any = torch.autograd.function._SingleLevelFunction
    before = vars(kind).get("apply")

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return by(super(kind, cls).apply, cls, args, kwargs)

    kind.apply = classmethod(apply)
    try:
        yield
    finally:
        if before is None:
            del kind.apply
        else:
            kind.apply = before


@contextlib.contextmanager
def calls_left_to_run(kinds: Collection[type]) -> Iterator[None]:
    """Where torch.export compiles Python, in strict mode and in the branches of torch.cond, calls
    of these `torch.autograd.Function`s are run as they are."""
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


def sets_up_context_apart(kind: Any) -> bool:
    """Whether the `forward` of a torch.autograd.Function takes no `ctx`."""
    is_defined: Any = torch.autograd.function._is_setup_context_defined
    return bool(is_defined(kind.setup_context))
