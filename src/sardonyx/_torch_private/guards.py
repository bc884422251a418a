"""Conditions on sizes that a capture takes for granted, and who asked."""

from __future__ import annotations

import contextlib
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import sympy
import torch

from sardonyx._torch_private.extremes import largest_of_sizes
from sardonyx._torch_private.folders import OWN_FOLDER, TORCH_FOLDER


@contextlib.contextmanager
def comparisons_answered(where: Callable[[FrameType], bool]) -> Iterator[None]:
    """Comparisons of symbolic numbers give Python booleans to the frames that `where` picks."""
    kinds: tuple[Any, ...] = (torch.SymInt, torch.SymFloat)
    names = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
    before = [(kind, name, getattr(kind, name)) for kind in kinds for name in names]

    def answering(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def compare(self: Any, other: Any) -> Any:
            answer = original(self, other)
            is_asked = isinstance(answer, torch.SymBool) and where(sys._getframe(1))
            return bool(answer) if is_asked else answer

        return compare

    for kind, name, original in before:
        setattr(kind, name, answering(original))
    try:
        yield
    finally:
        for kind, name, original in before:
            setattr(kind, name, original)


@contextlib.contextmanager
def answers_watched(note: Callable[[Any, FrameType], None]) -> Iterator[None]:
    """Tells of every condition on sizes that the model's own Python asks for and that holds, as it
    is noted, for all sizes that torch.export takes to be possible: those from 2 on. What is asked
    to know a stride is answered for the example, and nothing is concluded from it."""
    from torch.fx.experimental.sym_node import SymNode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv, uninteresting_files

    kind: Any = SymNode
    env_kind: Any = ShapeEnv
    guard, evaluate = kind.guard_bool, env_kind.evaluate_expr
    passing_on = uninteresting_files()

    def asker() -> FrameType:
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename in passing_on:
            frame = frame.f_back
        return frame

    def guard_bool(self: Any, file: str, line: int) -> bool:
        guards = self.shape_env.guards
        known = len(guards)
        answer = bool(guard(self, file, line))
        expression: Any = self.expr
        if len(guards) == known and expression.free_symbols:
            frame = asker()
            at = frame.f_code.co_filename
            if not at.startswith((TORCH_FOLDER, OWN_FOLDER)) or at.startswith(OF_WINDOWS):
                note(expression if answer else sympy.Not(expression), frame)
        return answer

    def evaluate_expr(self: Any, expression: Any, *args: Any, **options: Any) -> Any:
        if expression.free_symbols:
            code = asker().f_code
            if asks_layout(code.co_filename, code.co_name):
                with self.suppress_guards():
                    return evaluate(self, expression, *args, **options)
        return evaluate(self, expression, *args, **options)

    ours = {guard_bool.__code__.co_filename, largest_of_sizes.__code__.co_filename} - passing_on
    kind.guard_bool, env_kind.evaluate_expr = guard_bool, evaluate_expr
    passing_on |= ours
    try:
        with conditions_as_keys():
            yield
    finally:
        passing_on -= ours
        kind.guard_bool, env_kind.evaluate_expr = guard, evaluate


@contextlib.contextmanager
def texts_watched(note: Callable[[Any, FrameType], None]) -> Iterator[None]:
    """Tells of every symbolic number that code outside of PyTorch makes text of: `str(n)` is the
    name of a symbol then, and equal to no other text."""
    kinds: tuple[Any, ...] = (torch.SymInt, torch.SymFloat)
    before = [(kind, kind.__repr__) for kind in kinds]

    def telling(original: Callable[[Any], str]) -> Callable[[Any], str]:
        def text(self: Any) -> str:
            frame = sys._getframe(1)
            if not frame.f_code.co_filename.startswith((TORCH_FOLDER, OWN_FOLDER)):
                note(self.node.expr, frame)
            return original(self)

        return text

    for kind, original in before:
        kind.__repr__ = telling(original)
    try:
        yield
    finally:
        for kind, original in before:
            kind.__repr__ = original


@contextlib.contextmanager
def conditions_as_keys() -> Iterator[None]:
    """A condition on sizes is equal to a Python bool, and stands for an index, by its answer:
    torch.export would record the model in another way, of which nothing is told."""
    kind: Any = torch.SymBool
    equal, index = kind.__eq__, getattr(kind, "__index__", None)

    def equal_to(self: Any, other: Any) -> Any:
        return bool(self) == other if isinstance(other, bool) else equal(self, other)

    kind.__eq__ = equal_to
    if index is None:
        kind.__index__ = lambda self: int(bool(self))
    try:
        yield
    finally:
        kind.__eq__ = equal
        if index is None:
            del kind.__index__


class Guard(NamedTuple):
    """A condition on sizes that a capture took for granted."""

    expression: Any
    place: tuple[str, int, str] | None
    """File, line and text where the model's own code asks; None where an operator does."""
    in_model_code: bool
    is_layout_check: bool
    """Asked to know a stride, which ONNX does not have."""


_STRICT_PLACE = re.compile(r"^(?P<text>.*?)\s+# (?P<file>\S+):(?P<line>\d+) in ")


OF_WINDOWS = os.path.join(TORCH_FOLDER, "signal") + os.sep
"""torch.signal is Python, too, and asks whether a window has the length 1."""


_LAYOUT_FUNCTIONS = ("contiguous", "stride", "dense", "channels_last")
_ORDERS_OF_STRIDES = os.path.join(TORCH_FOLDER, "_prims_common") + os.sep
_OF_ORDERS = ("__lt__", "should_swap", "ge", "compute_elementwise_output_logical_to_physical_perm")


def asks_layout(file: str, function: str) -> bool:
    if file.startswith(_ORDERS_OF_STRIDES) and function in _OF_ORDERS:
        return True
    return file.startswith(TORCH_FOLDER) and any(word in function for word in _LAYOUT_FUNCTIONS)


def guards(mode: Any, start: int = 0) -> list[Guard]:
    found = []
    for guard in mode.shape_env.guards[start:]:
        frame = guard.sloc.framework_loc
        file, line = getattr(frame, "filename", ""), getattr(frame, "lineno", 0) or 0
        # torch.export's strict mode runs the model's Python in an interpreter of its own.
        strict = _STRICT_PLACE.match(guard.sloc.maybe_user_loc or "")
        # A frame of ours is a mode that runs the operator which asks.
        in_model_code = (
            "/_dynamo/" in file if strict else not file.startswith((TORCH_FOLDER, OWN_FOLDER))
        )
        place = None
        if strict:
            place = (os.path.basename(strict["file"]), int(strict["line"]), strict["text"])
        elif in_model_code:
            place = (file, line, linecache.getline(file, line).strip())
        is_layout_check = asks_layout(file, getattr(frame, "name", "") or "")
        found.append(Guard(guard.expr, place, in_model_code, is_layout_check))
    return found


def guard_count(mode: Any) -> int:
    return len(mode.shape_env.guards)
