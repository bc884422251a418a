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


def run_forward_of(kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a call of the function returns where no gradient is asked for."""
    context: Any = torch.autograd.function.FunctionCtx()
    context.needs_input_grad = (False,) * len(args)
    if sets_up_context_apart(kind):
        result = kind.forward(*args, **kwargs)
        kind.setup_context(context, args, result)
    else:
        result = kind.forward(context, *args, **kwargs)
    written = [id(tensor) for tensor in getattr(context, "dirty_tensors", ())]
    given = [id(a) for a in args if isinstance(a, torch.Tensor) and id(a) not in written]

    def returned(item: Any) -> Any:
        """An argument that is returned as it is comes back as another tensor of its memory."""
        return item.view_as(item) if id(item) in given else item

    return tuple(map(returned, result)) if isinstance(result, tuple) else returned(result)


def sets_up_context_apart(kind: Any) -> bool:
    """Whether the `forward` of a torch.autograd.Function takes no `ctx`."""
    is_defined: Any = torch.autograd.function._is_setup_context_defined
    return bool(is_defined(kind.setup_context))
