"""Attributes that are no buffers and that `forward` assigns: a file keeps none of them."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from types import FunctionType

import torch

from sardonyx.aten.location import Place, place_text
from sardonyx.notes import Note


def assignment_note(path: str, module: torch.nn.Module, name: str) -> Note:
    place = next(_assignments(type(module), name), None)
    at = f" at {place_text(place)}" if place is not None else ""
    return Note(
        f"the model assigns to its attribute {f'{path}.{name}' if path else name}{at}: the file"
        " does not keep it from run to run (of a buffer, the option state_outputs returns the new"
        " value)",
        place=place,
    )


def _assignments(kind: type, name: str) -> Iterator[Place]:
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
                yield file, line, linecache.getline(file, line).strip()


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
