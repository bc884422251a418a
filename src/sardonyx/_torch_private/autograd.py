"""Calls of a torch.autograd.Function."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Collection, Iterator
from typing import Any

import torch


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
