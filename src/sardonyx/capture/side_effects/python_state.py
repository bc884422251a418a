"""What a model holds that is no tensor: attributes, and what lists, dicts and objects hold."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from types import FunctionType, GetSetDescriptorType, MethodType, NoneType
from typing import Any, TypeAlias

import torch

_Getter: TypeAlias = Callable[[Any], Any]


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
            if not isinstance(container, tuple):
                content = _own(container).copy(container) if len(container) else _EMPTY
                held.append((container, content))
            for value in content.values() if isinstance(content, dict) else content:
                kind = id(type(value))  # which need not have a hash
                getters = kinds.get(kind)
                if getters is None:
                    getters = kinds[kind] = _held_by_objects(type(value))
                if getters is _ONLY_ITSELF and not value:
                    # Most containers are the hooks that a module does not have.
                    held.append((value, _EMPTY))
                    room -= 1
                else:
                    found += [of_value(value) for of_value in getters]
    return held


def _refill(container: Any, content: Any) -> None:
    """Writes only where something changed: identity counts, tensors have no plain equality."""
    if not content and not len(container):
        return
    own = _own(container)
    if not content:
        own.clear(container)
    elif isinstance(container, dict):
        now = own.copy(container)
        if not (_are_same(now, content) and _are_same(now.values(), content.values())):
            own.clear(container)
            own.update(container, content)
    elif isinstance(container, set):
        if container != content:
            container.clear()
            container.update(content)
    elif not _are_same(own.copy(container), content):
        own.clear(container)
        own.extend(container, content)


def _are_same(now: Any, before: Any) -> bool:
    return [*map(id, now)] == [*map(id, before)]


def _own(container: Any) -> Any:
    """The class whose methods show what a container holds; those of a subclass may do more."""
    kind = type(container)
    if kind in _CONTAINERS:
        return kind
    return list if isinstance(container, list) else dict


def _held_by_objects(kind: type) -> tuple[_Getter, ...]:
    """What gives the attributes of an object of the class, and its items; nothing where they are
    not the model's own: those of Python and of PyTorch (a logger, a type) lead to the rest of the
    process."""
    if issubclass(kind, (type, torch.Tensor, torch.jit.ScriptModule)):
        return ()
    root = str(kind.__module__).partition(".")[0]
    if root in _OF_OTHERS and not issubclass(kind, torch.nn.Module):
        return ()
    has_items = issubclass(kind, (tuple, list, dict)) and not issubclass(kind, OrderedDict)
    items: tuple[_Getter, ...] = (_itself,) if has_items else ()
    named = (vars(base).get("__dict__") for base in kind.__mro__)
    attributes = next((found for found in named if found is not None), None)
    # Not by its name: a class may answer that with anything, or raise.
    if isinstance(attributes, GetSetDescriptorType):
        return (*items, attributes.__get__)
    return items


def _itself(container: Any) -> Any:
    return container


_MOST_ITEMS = 50_000
_ITEMS_OF_A_MODULE = 100
_EMPTY: tuple[()] = ()
_ONLY_ITSELF: tuple[_Getter, ...] = (_itself,)
_OF_OTHERS = sys.stdlib_module_names | {"torch", "numpy"}
_PLAIN = (
    bool, int, float, complex, str, bytes, NoneType, FunctionType, MethodType,
    torch.Tensor, torch.nn.Parameter, torch.dtype, torch.device,
)  # fmt: skip
_CONTAINERS = (list, tuple, dict, OrderedDict, defaultdict, Counter, deque, set)
_KINDS: dict[int, tuple[_Getter, ...]] = {
    **dict.fromkeys(map(id, _PLAIN), ()),
    **dict.fromkeys(map(id, _CONTAINERS), _ONLY_ITSELF),
}
"""What gives what a value holds, by the id of its class."""
