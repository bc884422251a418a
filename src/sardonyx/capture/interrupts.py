"""Ctrl-C while a model is recorded.

PyTorch puts its dispatch modes back in destructors of C++ that end the process when an exception
left a mode active. So an interrupt waits until the next operator is recorded.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_pending: list[Callable[..., object]] = []
"""The handlers of the interrupts that are to be handled."""


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Ctrl-C is handled by the next `handle_interrupt()`, a second one at once."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return

    def defer(number: int, frame: FrameType | None) -> None:
        # The frame itself is not kept: it would hold tensors of the recording.
        _pending.append(handler)
        if len(_pending) > 1:
            handle_interrupt()

    signal.signal(signal.SIGINT, defer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        handle_interrupt()


def handle_interrupt() -> None:
    if _pending:
        handler = _pending[0]
        _pending.clear()
        handler(signal.SIGINT, sys._getframe(1))
