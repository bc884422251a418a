"""`symbolic_opset9` and its kin: ONNX forms of operators, for symbolic functions that build on
them. All have the same, as every form follows the opset of the export; a function that is put into
one is registered for its opset."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from sardonyx import symbolic_helper
from sardonyx.extend.custom_symbolics import (
    register_custom_op_symbolic,
    unregister_custom_op_symbolic,
)
from sardonyx.extend.library_functions import LibraryFunction, library_function

_VERSIONS = range(7, 21)


class SymbolicOpset(types.ModuleType):
    """A module whose functions are the library's operators: `relu(g, x)`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _cast(name) or _OWN.get(name) or library_function(name.removesuffix("_"))
        if found is None:
            raise AttributeError(f"Sardonyx has no ONNX form of aten::{name} to call")
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, LibraryFunction):  # put back where a function of the user's was
            if name in vars(self):
                del self.__dict__[name]
                unregister_custom_op_symbolic(f"aten::{name}", self._version)
            return
        if callable(value) and not name.startswith("_"):
            register_custom_op_symbolic(f"aten::{name}", value, self._version)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if not name.startswith("_"):
            unregister_custom_op_symbolic(f"aten::{name}", self._version)

    @property
    def _version(self) -> int:
        return int(self.__name__.rpartition("opset")[2])


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

MODULES = {
    name: SymbolicOpset(f"sardonyx.{name}", __doc__)
    for name in (f"symbolic_opset{version}" for version in _VERSIONS)
}
for _module in MODULES.values():
    sys.modules[_module.__name__] = _module
