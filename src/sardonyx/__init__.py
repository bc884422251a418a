"""Sardonyx turns PyTorch models into ONNX."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from sardonyx.compat.torch_onnx.symbolic_opsets import MODULES as _SYMBOLIC_OPSETS
from sardonyx.version import PRODUCER
from sardonyx.version import producer_version as _producer_version

producer_name = PRODUCER
__version__ = producer_version = _producer_version()

if TYPE_CHECKING:
    from sardonyx.public import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """A module of the package, or a name of `sardonyx.public`, which needs PyTorch and is
        imported when it is first asked for."""
        if name in _SYMBOLIC_OPSETS:
            return _SYMBOLIC_OPSETS[name]
        if (name.startswith("__") and name != "__all__") or not name.isidentifier():
            raise AttributeError(f"module 'sardonyx' has no attribute {name!r}")
        if importlib.util.find_spec(f"sardonyx.{name}") is not None:
            return importlib.import_module(f"sardonyx.{name}")
        found = vars(importlib.import_module("sardonyx.public")).get(name)
        if found is None:
            raise AttributeError(f"module 'sardonyx' has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    public = importlib.import_module("sardonyx.public")
    return sorted({*_OTHERS, *public.__all__, *_SYMBOLIC_OPSETS})


_OTHERS = ("__version__", "errors", "producer_name", "producer_version", "symbolic_registry")
"""What is there besides the names of `sardonyx.public`."""
