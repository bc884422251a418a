"""The operator library, a file per theme. Importing a theme registers its lowerings."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    """Import every theme."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
