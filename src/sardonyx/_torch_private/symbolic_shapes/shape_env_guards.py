"""Guards: conditions on sizes that a capture assumes, and the code that needs them."""

from __future__ import annotations

import linecache
import os
import re
from dataclasses import dataclass
from typing import Any

import sympy

from sardonyx._torch_private.paths import OWN_FOLDER, TORCH_FOLDER


@dataclass(frozen=True, slots=True)
class SizeCondition:
    """A condition on size symbols that held for the example."""

    expression: sympy.Basic
    place: tuple[str, int, str]
    """File, line and text in the model's code."""
    in_model_code: bool
    """Whether the model's own Python evaluated it, and not an operator's check of its inputs."""


_STRICT_PLACE = re.compile(r"^(?P<text>.*?)\s+# (?P<file>\S+):(?P<line>\d+) in ")


OF_WINDOWS = os.path.join(TORCH_FOLDER, "signal") + os.sep
"""torch.signal compares the length of a window with 1, in Python."""


_LAYOUT_FUNCTIONS = ("contiguous", "stride", "dense", "channels_last")
_ORDERS_OF_STRIDES = os.path.join(TORCH_FOLDER, "_prims_common") + os.sep
_OF_ORDERS = ("__lt__", "should_swap", "ge", "compute_elementwise_output_logical_to_physical_perm")


def asks_layout(file: str, function: str) -> bool:
    if file.startswith(_ORDERS_OF_STRIDES) and function in _OF_ORDERS:
        return True
    return file.startswith(TORCH_FOLDER) and any(word in function for word in _LAYOUT_FUNCTIONS)


def guards(mode: Any, start: int = 0) -> list[SizeCondition]:
    """Those of a mode, but for what strides need, which ONNX does not have."""
    found = []
    for guard in mode.shape_env.guards[start:]:
        frame = guard.sloc.framework_loc
        file, line = getattr(frame, "filename", ""), getattr(frame, "lineno", 0) or 0
        if asks_layout(file, getattr(frame, "name", "") or ""):
            continue
        # torch.export's strict mode interprets the model's Python.
        strict = _STRICT_PLACE.match(guard.sloc.maybe_user_loc or "")
        # A frame of ours is a mode that runs the operator.
        in_model_code = (
            "/_dynamo/" in file if strict else not file.startswith((TORCH_FOLDER, OWN_FOLDER))
        )
        place = ("", 0, "")
        if strict:
            place = (os.path.basename(strict["file"]), int(strict["line"]), strict["text"])
        elif in_model_code:
            place = (file, line, linecache.getline(file, line).strip())
        found.append(SizeCondition(guard.expr, place, in_model_code))
    return found


def guard_count(mode: Any) -> int:
    return len(mode.shape_env.guards)
