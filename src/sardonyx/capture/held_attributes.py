"""What a model holds that is no tensor: attributes, and what lists, dicts and objects hold."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from types import FunctionType, GetSetDescriptorType, MethodType, NoneType
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
    """The containers that can be reached from the model, and a copy of each. The nearest come
    first, and of these the smallest; what there is no room for is left alone: a dataset, or all
    that a trainer holds."""
    held: list[tuple[Any, Any]] = []
    seen: set[int] = set()
    found: list[Any] = [module.__dict__ for module in model.modules()]
    room = _MOST_ITEMS + len(found) * _ITEMS_OF_A_MODULE
    kinds = dict(_KINDS)
    while found:
        nearest, found = sorted(found, key=len), []
        for container in nearest:
            if id(container) in seen or len(container) >= room:
                continue
            seen.add(id(container))
            room -= len(container) + 1
            content = container
            if type(container) is not tuple:
                # Most are the hooks that a module does not have.
                content = container.copy() if container else _EMPTY
                held.append((container, content))
            for value in content.values() if isinstance(content, dict) else content:
                kind = type(value)
                if id(kind) not in kinds:  # which need not have a hash
                    kinds[id(kind)] = _attributes_of(kind)
                of_value = kinds[id(kind)]
                if of_value is not None:
                    found.append(of_value(value))
    return held


def _refill(container: Any, content: Any) -> None:
    """Writes only where something changed: identity counts, tensors have no plain equality."""
    if not container and not content:
        return
    if not content:
        container.clear()
    elif isinstance(container, dict):
        if not (_are_same(container, content) and _are_same(container.values(), content.values())):
            container.clear()
            container.update(content)
    elif isinstance(container, set):
        if container != content:
            container.clear()
            container.update(content)
    elif not _are_same(container, content):
        container.clear()
        container.extend(content)


def _are_same(now: Any, before: Any) -> bool:
    return [*map(id, now)] == [*map(id, before)]


def _attributes_of(kind: type) -> Callable[[Any], Any] | None:
    """What gives the attributes of an object of the class; None where they are not the model's own:
    those of Python and of PyTorch (a logger, a type) lead to the rest of the process."""
    if issubclass(kind, (type, torch.Tensor, torch.jit.ScriptModule)):
        return None
    root = str(kind.__module__).partition(".")[0]
    if root in _OF_OTHERS and not issubclass(kind, torch.nn.Module):
        return None
    named = (vars(base).get("__dict__") for base in kind.__mro__)
    attributes = next((found for found in named if found is not None), None)
    # Not by its name: a class may answer that with anything, or raise.
    return attributes.__get__ if isinstance(attributes, GetSetDescriptorType) else None


def _itself(container: Any) -> Any:
    return container


_MOST_ITEMS = 50_000
_ITEMS_OF_A_MODULE = 100
_EMPTY: tuple[()] = ()
_OF_OTHERS = sys.stdlib_module_names | {"torch", "numpy"}
_PLAIN = (
    bool, int, float, complex, str, bytes, NoneType, FunctionType, MethodType,
    torch.Tensor, torch.nn.Parameter, torch.dtype, torch.device,
)  # fmt: skip
_CONTAINERS = (list, tuple, dict, OrderedDict, defaultdict, Counter, deque, set)
_KINDS: dict[int, Callable[[Any], Any] | None] = {
    **dict.fromkeys(map(id, _PLAIN)),
    **dict.fromkeys(map(id, _CONTAINERS), _itself),
}
"""What gives the items of a value, by the id of its class."""
