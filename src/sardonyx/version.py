"""Who makes the files, and in which version."""

from __future__ import annotations

import importlib.metadata
from functools import cache

PRODUCER = "sardonyx"


@cache
def producer_version() -> str:
    try:
        return importlib.metadata.version(PRODUCER)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"  # run from a source tree that is not installed
