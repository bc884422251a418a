"""The log of an export, on the error stream or to any logging handler."""

from __future__ import annotations

import logging
from typing import TextIO

LOGGER = logging.getLogger("sardonyx")


class _ToErrors(logging.StreamHandler[TextIO]):
    """A handler of our own, that nobody else's settings take away."""


def enable_log() -> None:
    """Write the stages of each export, its notes and its graph to the error stream."""
    disable_log()
    handler = _ToErrors()
    handler.setFormatter(logging.Formatter("sardonyx: %(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)


def disable_log() -> None:
    """Undo `enable_log`."""
    for handler in [h for h in LOGGER.handlers if isinstance(h, _ToErrors)]:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(logging.NOTSET)
