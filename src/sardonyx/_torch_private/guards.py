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

from sardonyx._torch_private.folders import OWN_FOLDER, TORCH_FOLDER


@contextlib.contextmanager
def answers_watched(note: Callable[[Any, FrameType], None]) -> Iterator[None]:
    """Tells of every condition on sizes that the model's own Python asks for and that holds, as it
    is noted, for all sizes that torch.export takes to be possible: those from 2 on."""
    from torch.fx.experimental.sym_node import SymNode
    from torch.fx.experimental.symbolic_shapes import uninteresting_files

    kind: Any = SymNode
    original = kind.guard_bool
    passing_on = uninteresting_files()

    def guard_bool(self: Any, file: str, line: int) -> bool:
        guards = self.shape_env.guards
        known = len(guards)
        answer = bool(original(self, file, line))
        expression: Any = self.expr
        if len(guards) == known and expression.free_symbols:
            frame = sys._getframe(1)
            while frame.f_back is not None and frame.f_code.co_filename in passing_on:
                frame = frame.f_back
            asker = frame.f_code.co_filename
            if not asker.startswith((TORCH_FOLDER, OWN_FOLDER)) or asker.startswith(_OF_WINDOWS):
                note(expression if answer else sympy.Not(expression), frame)
        return answer

    kind.guard_bool = guard_bool
    passing_on.add(guard_bool.__code__.co_filename)
    try:
        yield
    finally:
        passing_on.discard(guard_bool.__code__.co_filename)
        kind.guard_bool = original


class Guard(NamedTuple):
    """A condition on sizes that a capture took for granted."""

    expression: Any
    place: tuple[str, int, str] | None
    """File, line and text where the model's own code asks; None where an operator does."""
    in_model_code: bool
    is_layout_check: bool
    """Asked to know a stride, which ONNX does not have."""


_STRICT_PLACE = re.compile(r"^(?P<text>.*?)\s+# (?P<file>\S+):(?P<line>\d+) in ")


_OF_WINDOWS = os.path.join(TORCH_FOLDER, "signal") + os.sep
"""torch.signal is Python, too, and asks whether a window has the length 1."""


_LAYOUT_FUNCTIONS = ("contiguous", "stride", "dense", "channels_last")


def guards(mode: Any, start: int = 0) -> list[Guard]:
    found = []
    for guard in mode.shape_env.guards[start:]:
        frame = guard.sloc.framework_loc
        file, line = getattr(frame, "filename", ""), getattr(frame, "lineno", 0) or 0
        # torch.export's strict mode runs the model's Python in an interpreter of its own.
        strict = _STRICT_PLACE.match(guard.sloc.maybe_user_loc or "")
        in_torch = file.startswith(TORCH_FOLDER)
        # A frame of ours is a mode that runs the operator which asks.
        in_model_code = (
            "/_dynamo/" in file if strict else not file.startswith((TORCH_FOLDER, OWN_FOLDER))
        )
        place = None
        if strict:
            place = (os.path.basename(strict["file"]), int(strict["line"]), strict["text"])
        elif in_model_code:
            place = (file, line, linecache.getline(file, line).strip())
        function = getattr(frame, "name", "") or ""
        asks_layout = in_torch and any(word in function for word in _LAYOUT_FUNCTIONS)
        found.append(Guard(guard.expr, place, in_model_code, asks_layout))
    return found


def guard_count(mode: Any) -> int:
    return len(mode.shape_env.guards)
