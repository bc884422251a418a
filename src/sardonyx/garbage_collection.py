"""Python's collector of garbage during an export."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def older_objects_set_aside() -> Iterator[None]:
    """The collector looks at objects that are made meanwhile, and not again and again at all those
    that were there before: importing PyTorch alone makes hundreds of thousands."""
    if gc.get_freeze_count():  # by the program that calls, or by an export around this one
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
