"""How much work a call does, in a measure that other load on the machine does not change."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def function_calls(run: Callable[[], object]) -> int:
    """The Python and C functions that `run` calls on this thread, its first run left out: that one
    imports modules and fills caches."""
    run()
    count = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count
