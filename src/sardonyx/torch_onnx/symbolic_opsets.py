"""`symbolic_opset9` and its kin: ONNX forms of operators, for symbolic functions that build on
them. All are the same here, as every form follows the opset of the export."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from sardonyx import symbolic_helper
from sardonyx.extend.library_functions import library_function

NAMES = tuple(f"symbolic_opset{version}" for version in range(7, 21))


class SymbolicOpset(types.ModuleType):
    """A module whose functions are the library's operators: `relu(g, x)`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _cast(name) or _OWN.get(name) or library_function(name.removesuffix("_"))
        if found is None:
            raise AttributeError(f"Sardonyx has no ONNX form of aten::{name} to call")
        return found


def _cast(name: str) -> Callable[..., Any] | None:
    """`_cast_Long(g, x, False)`."""
    kind = name.removeprefix("_cast_")
    if kind == name or kind not in symbolic_helper.cast_pytorch_to_onnx:
        return None
    return lambda g, input, non_blocking=False: symbolic_helper._cast_helper(g, input, kind)


def _size(g: Any, self: Any, dim: Any = None) -> Any:
    return g.op("Shape", self) if dim is None else symbolic_helper._size_helper(g, self, dim)


_OWN: dict[str, Callable[..., Any]] = {
    "size": _size,
    "numel": lambda g, self: g.op("Size", self),
    "unused": lambda g: None,
}

MODULES = {name: SymbolicOpset(f"sardonyx.{name}", __doc__) for name in NAMES}
for _module in MODULES.values():
    sys.modules[_module.__name__] = _module
