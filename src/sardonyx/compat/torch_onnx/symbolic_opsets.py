"""`symbolic_opset9` and its kin: ONNX forms of operators, for symbolic functions that build on
them. All have the same, as every form follows the opset of the export; a function that is put into
one is registered for its opset."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

_VERSIONS = range(7, 29)
_OF_SYMBOLIC = 9
"""The opset of `symbolic`, which was there before there were several."""

_assigned: dict[int, dict[str, Callable[..., Any]]] = {}
"""The functions that were put into modules, by their opsets."""


class SymbolicOpset(types.ModuleType):
    """A module whose functions are the library's operators: `relu(g, x)`."""

    def __init__(self, name: str, version: int) -> None:
        super().__init__(name, __doc__)
        self.__spec__ = ModuleSpec(name, None)
        self._version = version
        self._assigned = _assigned.setdefault(version, {})

    # The library is searched on access: these modules exist without torch.

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [each for each in dir(self) if not each.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(name)
        from sardonyx.extend.symbolic_functions.library_functions import library_function

        found = (
            self._own(name)
            or _cast(name)
            or _OWN.get(name)
            or library_function(name.removesuffix("_"))
        )
        if found is None:
            raise AttributeError(f"Sardonyx has no ONNX form of aten::{name} to call")
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or not callable(value) or isinstance(value, type):
            super().__setattr__(name, value)
            return
        from sardonyx.extend.symbolic_functions.registration import register_custom_op_symbolic

        if _is_of_the_library(value, name):  # put back where a function of the user's was
            if self._own(name) is not None:
                delattr(self, name)
        else:
            register_custom_op_symbolic(f"aten::{name}", value, self._version)
            self._assigned[name] = value

    def __delattr__(self, name: str) -> None:
        from sardonyx.extend.symbolic_functions.registration import unregister_custom_op_symbolic

        if self._own(name) is None:
            super().__delattr__(name)
        else:
            del self._assigned[name]
            unregister_custom_op_symbolic(f"aten::{name}", self._version)

    def __dir__(self) -> list[str]:
        from sardonyx.extend.symbolic_functions.library_functions import library_function_names

        return sorted({*super().__dir__(), *self._assigned, *_OWN, *library_function_names()})

    def _own(self, name: str) -> Callable[..., Any] | None:
        """A function that was put here, as long as it is registered."""
        from sardonyx.extend.symbolic_functions.registration import registered_function

        assigned = self._assigned.get(name)
        if assigned is None:
            return None
        is_there = registered_function(f"aten::{name}", self._version) is assigned
        return assigned if is_there else None


def _is_of_the_library(function: Callable[..., Any], name: str) -> bool:
    """Whether it is the one that is found by that name where there is none of the user's."""
    from sardonyx.extend.symbolic_functions.library_functions import LibraryFunction

    if isinstance(function, LibraryFunction):
        return function.__name__ in (name, name.removesuffix("_"))
    return function is _OWN.get(name)


def _cast(name: str) -> Callable[..., Any] | None:
    """`_cast_Long(g, x, False)`."""
    from sardonyx.compat import node_helpers, symbolic_helper

    kind = name.removeprefix("_cast_")
    if kind == name or kind not in symbolic_helper.cast_pytorch_to_onnx:
        return None
    return lambda g, input, non_blocking=False: node_helpers._cast_helper(g, input, kind)


def _size(g: Any, self: Any, dim: Any = None) -> Any:
    from sardonyx.compat import node_helpers

    return g.op("Shape", self) if dim is None else node_helpers._size_helper(g, self, dim)


def _select(g: Any, self: Any, dim: Any, index: Any) -> Any:
    """Of a tensor of indices, as a Gather that keeps its dims: torchvision's functions do so."""
    from sardonyx.compat import symbolic_helper
    from sardonyx.extend.symbolic_functions.library_functions import library_function

    helper: Any = symbolic_helper
    if helper._is_value(index) and helper._get_tensor_rank(index) != 0:
        return g.op("Gather", self, index, axis_i=helper._get_const(dim, "i", "dim"))
    function: Any = library_function("select")
    return function(g, self, dim, index)


_OWN: dict[str, Callable[..., Any]] = {
    "select": _select,
    "size": _size,
    "numel": lambda g, self: g.op("Size", self),
    "unused": lambda g: None,
}

MODULES = {
    name: SymbolicOpset(f"sardonyx.{name}", version)
    for name, version in {
        "symbolic": _OF_SYMBOLIC,
        **{f"symbolic_opset{version}": version for version in _VERSIONS},
    }.items()
}
for _module in MODULES.values():
    sys.modules[_module.__name__] = _module
