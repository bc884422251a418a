"""What the source of a file says about its statements: which conditions only raise, where errors
may be caught, and which expressions are only reported."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping
from functools import _lru_cache_wrapper
from inspect import getattr_static
from types import FrameType
from typing import Any, NamedTuple, TypeGuard

Position = tuple[int | None, int | None, int | None, int | None]
"""First and last line, first and last column, as `co_positions()` has them."""


class Statements(NamedTuple):
    answers: Mapping[Position, bool]
    """By the position of a part of a condition, what it must be not to raise."""
    guarded_lines: frozenset[int]
    """Lines whose errors may be caught."""
    reports: tuple[Position, ...]
    """Expressions of which only people see the result: messages of errors, what is logged."""
    called: Mapping[Position, ast.expr]
    """By the position of a call, the function."""


_known: dict[str, tuple[list[str], Statements]] = {}


def statements_of(file: str) -> Statements | None:
    """None for a file without readable source."""
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    if file not in _known or _known[file][0] != lines:
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            return None
        _known[file] = list(lines), _read(tree)
    return _known[file][1] if lines else None


def is_only_reported(frame: FrameType) -> bool:
    """Whether a frame is computing what people read, and nothing else."""
    statements = statements_of(frame.f_code.co_filename)
    if statements is None:
        return False
    line, last, column, end = _running(frame)
    if line is None or last is None or column is None or end is None:
        return False
    return any(
        (first_line or 0, first or 0) <= (line, column) and (last, end) <= (last_line or 0, to or 0)
        for first_line, last_line, first, to in statements.reports
    )


def calls_cached_function(frame: FrameType) -> bool:
    """Whether a frame is calling a function of functools.lru_cache."""
    statements = statements_of(frame.f_code.co_filename)
    function = statements and statements.called.get(_running(frame))
    return function is not None and isinstance(_named(function, frame), _lru_cache_wrapper)


def _running(frame: FrameType) -> Position:
    return list(frame.f_code.co_positions())[frame.f_lasti // 2]


def _named(expression: ast.expr, frame: FrameType) -> Any:
    """What a name, or an attribute of one, is in a frame, found without running code."""
    if isinstance(expression, ast.Name):
        return frame.f_locals.get(expression.id, frame.f_globals.get(expression.id))
    if not isinstance(expression, ast.Attribute):
        return None
    found = getattr_static(_named(expression.value, frame), expression.attr, None)
    return found.__func__ if isinstance(found, staticmethod) else found


def _read(tree: ast.AST) -> Statements:
    answers: dict[Position, bool] = {}
    guarded: set[int] = set()
    reports: list[Position] = []
    called: dict[Position, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            answers.update(_answers(node.test, True))
            reports += [_position(node.msg)] if node.msg is not None else []
        elif isinstance(node, ast.Raise) and node.exc is not None:
            reports.append(_position(node.exc))
        elif isinstance(node, ast.If) and _only_raises(node.body):
            answers.update(_answers(node.test, False))
        elif isinstance(node, (ast.Try, ast.TryStar, ast.With)) and _may_catch(node):
            guarded.update(range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1))
        elif isinstance(node, ast.Expr) and _reports(node.value):
            reports += map(_position, node.value.args)
        elif isinstance(node, ast.Call):
            called[_position(node)] = node.func
    return Statements(answers, frozenset(guarded), tuple(reports), called)


def names_in(file: str) -> frozenset[str]:
    """The names and attributes that the source of a file uses; "" where there is no source."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)) or "''")
    except (SyntaxError, ValueError):
        return frozenset(("",))
    names = (getattr(node, "id", None) or getattr(node, "attr", None) for node in ast.walk(tree))
    return frozenset(name for name in names if name)


def _position(node: ast.expr) -> Position:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


_LEAVE = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom)
_HAVE_EFFECTS = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield)
_ERRORS = frozenset(
    ("ValueError", "RuntimeError", "TypeError", "AssertionError", "NotImplementedError")
)
"""Others, such as StopIteration and KeyError, are how Python code says something."""


def _contains(nodes: list[Any], kinds: tuple[type, ...]) -> bool:
    return any(isinstance(inner, kinds) for node in nodes for inner in ast.walk(node))


def _only_raises(body: list[ast.stmt]) -> bool:
    *before, last = body
    if not isinstance(last, ast.Raise) or last.exc is None:
        return False
    raised = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
    is_error = isinstance(raised, ast.Name) and raised.id in _ERRORS
    return is_error and not _contains(before, (*_LEAVE, ast.With, ast.Try, ast.TryStar, ast.Raise))


def _may_catch(node: ast.Try | ast.TryStar | ast.With) -> bool:
    """A context manager may swallow an error; those of torch do not."""
    if isinstance(node, ast.With):
        return not all(_root(item.context_expr) == "torch" for item in node.items)
    return bool(node.handlers) or _contains(list(node.finalbody), _LEAVE)


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _answers(test: ast.expr, wanted: bool) -> Iterator[tuple[Position, bool]]:
    """A condition and its parts, each with the answer that makes the whole `wanted`."""
    yield _position(test), wanted
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _answers(test.operand, not wanted)
    elif isinstance(test, ast.BoolOp):
        # One part may be enough: then those after it are not evaluated, and must do nothing.
        is_enough = isinstance(test.op, ast.Or) == wanted
        for index, part in enumerate(test.values):
            if not is_enough or not _contains(list(test.values[index + 1 :]), _HAVE_EFFECTS):
                yield from _answers(part, wanted)


_REPORTING = {
    "": ("print",),
    "torch": ("_assert", "_check", "_check_value", "_check_type", "_check_index"),
    "warnings": ("warn",),
    **dict.fromkeys(
        ("logging", "logger", "log", "_logger", "LOGGER", "LOG"),
        ("debug", "info", "warning", "warning_once", "error", "critical", "exception"),
    ),
}
"""By the name that a function is an attribute of."""


def _reports(call: ast.expr) -> TypeGuard[ast.Call]:
    if not isinstance(call, ast.Call) or _contains(list(call.args), (ast.NamedExpr,)):
        return False
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in _REPORTING[""]
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    return function.attr in _REPORTING.get(function.value.id, ())
