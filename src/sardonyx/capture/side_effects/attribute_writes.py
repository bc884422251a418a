"""Attributes that are no buffers and that `forward` assigns: a file keeps none of them."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch

from sardonyx.aten.location import place_text

_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
_CONTAINERS = (list, dict, OrderedDict, defaultdict, set)  # no set: a class need not have a hash
_OF_ITEMS = (list, set)
_PLAIN = (bool, int, float, str, type(None), torch.Size)


class AssignedAttributes:
    """What the attributes of a model's own modules are before it runs."""

    def __init__(self, model: Any) -> None:
        modules = model.named_modules() if isinstance(model, torch.nn.Module) else ()
        self._before = [
            (prefix, module, _attributes(module))
            for prefix, module in modules
            if type(module).__module__.partition(".")[0] != "torch"
        ]

    def notes(self) -> list[str]:
        """On those that are others now."""
        return [
            _note(prefix, module, name)
            for prefix, module, before in self._before
            for name, now in _attributes(module).items()
            if name not in before or not _is_same(before[name], now)
        ]


def _attributes(module: torch.nn.Module) -> dict[str, tuple[Any, Any]]:
    """Each, and a copy of what it holds."""
    return {
        name: (value, value.copy() if type(value) in _CONTAINERS else None)
        for name, value in vars(module).items()
        if name not in _OF_EVERY_MODULE
    }


def _is_same(before: tuple[Any, Any], now: tuple[Any, Any]) -> bool:
    (old, held), (new, holds) = before, now
    if old is not new:
        return type(old) is type(new) and isinstance(old, _PLAIN) and bool(old == new)
    if held is None or len(held) != len(holds):
        return held is None
    is_same = _are_same(held, holds)
    return is_same and (type(old) in _OF_ITEMS or _are_same(held.values(), holds.values()))


def _are_same(before: Any, now: Any) -> bool:
    return all(left is right for left, right in zip(before, now, strict=True))


def _note(prefix: str, module: torch.nn.Module, name: str) -> str:
    path = f"{prefix}.{name}" if prefix else name
    at = next(_assignments(type(module), name), "")
    return (
        f"the model assigns to its attribute {path}{at and f' at {at}'}: the file does not keep it"
        " from run to run (of a buffer, the option state_outputs returns the new value)"
    )


def _assignments(kind: type, name: str) -> Iterator[str]:
    """The lines of a class that assign to an attribute, or change what it holds; those of
    `forward` first, those of `__init__` not at all."""
    functions = {
        function.__qualname__: function
        for base in kind.__mro__
        if base.__module__.partition(".")[0] != "torch"
        for function in vars(base).values()
        if isinstance(function, FunctionType) and function.__name__ != "__init__"
    }
    for function in sorted(functions.values(), key=lambda f: f.__name__ != "forward"):
        try:
            lines, first = inspect.getsourcelines(function)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, SyntaxError):  # typed in, or made by a program
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.stmt, ast.expr)) and _changes(node, name):
                file, line = function.__code__.co_filename, first + node.lineno - 1
                yield place_text((file, line, linecache.getline(file, line).strip()))


def _changes(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Assign):
        targets: list[ast.AST] = [t for target in node.targets for t in ast.walk(target)]
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [*ast.walk(node.target)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        targets = [node.func.value] if node.func.attr in _CHANGING else []
    else:
        return False
    return any(isinstance(t, ast.Attribute) and t.attr == name for t in targets)


_CHANGING = frozenset(
    ("append", "extend", "insert", "pop", "clear", "update", "setdefault", "add", "remove")
)
