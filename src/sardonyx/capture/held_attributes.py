"""What a model holds that is no tensor: attributes, and what lists, dicts and objects hold."""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from functools import lru_cache
from types import FunctionType, MethodType, NoneType
from typing import Any

import torch


@contextlib.contextmanager
def attributes_restored(model: Any) -> Iterator[None]:
    """Runs the model's own code; what it assigned is afterwards as before. A cache may hold the
    fake tensors of a capture, and another run would count on from where this one came to."""
    if not isinstance(model, torch.nn.Module) or isinstance(model, torch.jit.ScriptModule):
        yield
        return
    held = _held_by(model)
    try:
        yield
    finally:
        for container, content in held:
            _refill(container, content)


def _held_by(model: torch.nn.Module) -> list[tuple[Any, Any]]:
    """Every container that can be reached from the model, and a copy of it."""
    held: dict[int, tuple[Any, Any]] = {}
    found: list[Any] = [module.__dict__ for module in model.modules()]
    while found:
        container = found.pop()
        if id(container) in held:
            continue
        # Most are the hooks that a module does not have.
        held[id(container)] = container, container.copy() if container else _EMPTY
        for value in container.values() if isinstance(container, dict) else container:
            kind: type = type(value)
            if kind in _PLAIN:
                continue
            if kind in _CONTAINERS:
                found.append(value)
            elif kind is tuple:
                found.append([*value])
            elif _holds_attributes(kind):
                found.append(value.__dict__)
    return list(held.values())


def _refill(container: Any, content: Any) -> None:
    """Writes only where something changed: identity counts, tensors have no plain equality."""
    if not container and not content:
        return
    if not content:
        container.clear()
    elif isinstance(container, dict):
        if [*container] != [*content] or [*map(id, container.values())] != [
            *map(id, content.values())
        ]:
            container.clear()
            container.update(content)
    elif isinstance(container, set):
        if container != content:
            container.clear()
            container.update(content)
    elif [id(item) for item in container] != [id(item) for item in content]:
        container.clear()
        container.extend(content)


_PLAIN = frozenset(
    {
        bool, int, float, complex, str, bytes, NoneType, FunctionType, MethodType,
        torch.Tensor, torch.nn.Parameter, torch.dtype, torch.device,
    }
)  # fmt: skip
_EMPTY: tuple[()] = ()
_CONTAINERS = frozenset((list, dict, OrderedDict, defaultdict, deque, set))


@lru_cache(maxsize=4096)
def _holds_attributes(kind: type) -> bool:
    """Whether objects of a class are the model's own: those of Python and of PyTorch (a logger, a
    type) lead to the rest of the process."""
    if issubclass(kind, (type, torch.Tensor, torch.nn.Module)):
        return False
    root = kind.__module__.partition(".")[0]
    return kind.__dictoffset__ != 0 and root not in _OF_OTHERS


_OF_OTHERS = sys.stdlib_module_names | {"torch", "numpy"}
