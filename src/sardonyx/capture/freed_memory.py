"""The memory that a recorded run frees, given back to the system while the run goes on."""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from pathlib import Path
from typing import Any

from sardonyx import _torch_private
from sardonyx.capture.watched_calls import Call, WatchingMode, tensors_in

_BYTES_BETWEEN = 16 << 20
_GROWTH_ALLOWED = 40 << 20
_RESIDENT_SIZE = Path("/proc/self/statm")


class FreedMemory(WatchingMode):
    """Has malloc give back what is free, where the process has grown. The tracer's own small
    objects come to lie where results were, so that the results of later calls find no room there.

    Memory that was given back costs time when it is used again, more than looking does."""

    def __init__(self) -> None:
        super().__init__()
        self._made = 0
        """Bytes of results since the process was looked at."""
        self._allowed = _resident_bytes() + _GROWTH_ALLOWED

    def before(self, call: Call) -> None:
        pass

    def after(self, call: Call) -> None:
        if not call.new_addresses:
            return
        self._made += sum(_torch_private.memory_bytes(t) for t in tensors_in(call.result))
        if self._made < _BYTES_BETWEEN:
            return
        self._made = 0
        trim = _malloc_trim()
        if trim is not None and _resident_bytes() > self._allowed:
            trim(0)
            self._allowed = _resident_bytes() + _GROWTH_ALLOWED


def _resident_bytes() -> int:
    """0 where the system does not say."""
    if not _RESIDENT_SIZE.exists():
        return 0
    return int(_RESIDENT_SIZE.read_text().split()[1]) * mmap.PAGESIZE


@cache
def _malloc_trim() -> Any:
    """That of glibc; None where another library gives memory."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
