"""Lowerings from elsewhere, imported when a model first uses an operator of their namespace.

The file `sardonyx/plugins/<namespace>.py` has them, or a module that an installed package names as
`<namespace>` in its entry points of the group `sardonyx.operators`.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points

from sardonyx.errors import UnsupportedOperatorError
from sardonyx.lower.registry import Registry

GROUP = "sardonyx.operators"


def load_plugins(names: Iterable[str], library: Registry) -> None:
    """Imports what may have lowerings for those of the operators that the library lacks."""
    for namespace in sorted({name.split("::")[0] for name in names if name not in library}):
        _load(namespace)


@cache
def _load(namespace: str) -> None:
    modules = [point.module for point in entry_points(group=GROUP, name=namespace)]
    own = f"sardonyx.plugins.{namespace}"
    if namespace.isidentifier() and importlib.util.find_spec(own) is not None:
        modules.insert(0, own)
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise UnsupportedOperatorError(
                f"{module}, which has the ONNX forms of {namespace}:: operators, cannot be"
                f" imported: {error}"
            ) from error


def load_all_plugins() -> dict[str, str]:
    """Imports every module that has lowerings; why those could not be imported that failed."""
    own = [
        info.name
        for info in pkgutil.iter_modules(importlib.import_module("sardonyx.plugins").__path__)
    ]
    installed = [point.name for point in entry_points(group=GROUP)]
    failed: dict[str, str] = {}
    for namespace in sorted({*own, *installed}):
        try:
            _load(namespace)
        except UnsupportedOperatorError as error:
            failed[namespace] = str(error)
    return failed
