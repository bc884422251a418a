"""The memory that a recorded run frees, given back to the system while the run goes on."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

from sardonyx import _torch_private
from sardonyx.capture.watched_calls import Call, WatchingMode, tensors_in

_BYTES_BETWEEN = 64 << 20


class FreedMemory(WatchingMode):
    """Has malloc give back what is free, from time to time. The tracer's own small objects come to
    lie where results were, so that the results of later calls find no room there."""

    def __init__(self) -> None:
        super().__init__()
        self._made = 0
        """Bytes of results since memory was given back."""

    def before(self, call: Call) -> None:
        pass

    def after(self, call: Call) -> None:
        if not call.new_addresses:
            return
        self._made += sum(_torch_private.memory_bytes(t) for t in tensors_in(call.result))
        if self._made >= _BYTES_BETWEEN:
            self._made = 0
            trim = _malloc_trim()
            if trim is not None:
                trim(0)


@cache
def _malloc_trim() -> Any:
    """That of glibc; None where another library gives memory."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
