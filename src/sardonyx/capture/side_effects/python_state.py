"""What a model holds that is no tensor: attributes, and what lists, dicts and objects hold."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from types import FunctionType, GetSetDescriptorType, MethodType, NoneType
from typing import Any, TypeAlias

import torch

from sardonyx.aten.module_tree import modules_of, named_modules

_Getter: TypeAlias = Callable[[Any], Any]


class PythonState:
    """What the attributes, lists, dicts and objects of a model hold when it is made."""

    def __init__(self, model: Any) -> None:
        is_python = isinstance(model, torch.nn.Module) and not isinstance(
            model, torch.jit.ScriptModule
        )
        self._modules = list(named_modules(model)) if is_python else []
        self._held = _held_by(model) if is_python else []

    def restore(self) -> None:
        for container, content in self._held:
            _refill(container, content)

    def changed_attributes(self) -> Iterator[tuple[str, torch.nn.Module, str]]:
        """The attributes of the model's own modules that are, or hold, other objects now: the path
        of the module, the module, and the name."""
        contents = {id(container): content for container, content in self._held}
        for path, module in self._modules:
            before = contents.get(id(vars(module)))
            if before is None or _package(type(module)) == "torch":
                continue
            for name, now in vars(module).items():
                is_new = name not in before
                if name not in _OF_EVERY_MODULE and (
                    is_new or not _is_same(before[name], now, contents)
                ):
                    yield path, module, name


@contextlib.contextmanager
def attributes_restored(model: Any) -> Iterator[PythonState]:
    """Runs the model's own code; what it assigned is afterwards as before. A cache may hold the
    fake tensors of a capture, and another run would count on from where this one came to."""
    state = PythonState(model)
    try:
        yield state
    finally:
        state.restore()


def _package(kind: type) -> str:
    return str(kind.__module__).partition(".")[0]


def _is_same(before: Any, now: Any, contents: dict[int, Any]) -> bool:
    if before is not now:
        is_plain = type(before) is type(now) and isinstance(before, _COMPARED)
        return is_plain and not _has_symbols(now) and bool(before == now)
    return id(now) not in contents or _is_unchanged(now, contents[id(now)])


def _has_symbols(value: Any) -> bool:
    """Whether a comparison would fix dynamic sizes."""
    if isinstance(value, tuple):
        return any(map(_has_symbols, value))
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def _held_by(model: torch.nn.Module) -> list[tuple[Any, Any]]:
    """The containers that can be reached from the model, and a copy of each. The nearest come
    first, and of these the smallest; what there is no room for is left alone: a dataset, or all
    that a trainer holds."""
    held: list[tuple[Any, Any]] = []
    seen: set[int] = set()
    found: list[Any] = [module.__dict__ for module in modules_of(model)]
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
    """Writes only where something changed."""
    if _is_unchanged(container, content):
        return
    own = _own(container)
    own.clear(container)
    if content and isinstance(container, dict | set):
        own.update(container, content)
    elif content:
        own.extend(container, content)


def _is_unchanged(container: Any, content: Any) -> bool:
    """Identity counts: tensors have no plain equality."""
    if not content or not len(container):
        return len(content) == len(container)
    if isinstance(container, set):
        return bool(container == content)
    now = _own(container).copy(container)
    is_same = [*map(id, now)] == [*map(id, content)]
    if is_same and isinstance(container, dict):
        return [*map(id, now.values())] == [*map(id, content.values())]
    return is_same


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
    if _package(kind) in _OF_OTHERS and not issubclass(kind, torch.nn.Module):
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


_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
_COMPARED = (bool, int, float, str, NoneType, torch.Size)
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
