"""Guards: conditions on sizes that a capture assumes, and the code that needs them."""

from __future__ import annotations

import linecache
import os
import re
from typing import Any, NamedTuple

from sardonyx._torch_private.paths import OWN_FOLDER, TORCH_FOLDER


class Guard(NamedTuple):
    """A condition on sizes that a capture assumed."""

    expression: Any
    place: tuple[str, int, str] | None
    """File, line and text in the model's code; None where an operator needs it."""
    in_model_code: bool
    is_layout_check: bool
    """Needed for a stride, which ONNX does not have."""


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


def guards(mode: Any, start: int = 0) -> list[Guard]:
    found = []
    for guard in mode.shape_env.guards[start:]:
        frame = guard.sloc.framework_loc
        file, line = getattr(frame, "filename", ""), getattr(frame, "lineno", 0) or 0
        # torch.export's strict mode interprets the model's Python.
        strict = _STRICT_PLACE.match(guard.sloc.maybe_user_loc or "")
        # A frame of ours is a mode that runs the operator.
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
