"""Sardonyx behind PyTorch's own names for exporting: programs that call those need no change."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from sardonyx import _torch_private, errors, symbolic_registry, verification
from sardonyx.compat import symbolic_helper, utils
from sardonyx.compat.torch_onnx import jit_scalar_type, legacy_calls, symbolic_opsets
from sardonyx.extend.symbolic_functions import graph_context

_ABSENT = object()

_SHARED_NAMES = (
    "CheckerError", "DiagnosticOptions", "ExportOptions", "ExportOutput", "ExportOutputSerializer",
    "InvalidExportOptionsError", "JitScalarType", "ONNXFakeContext", "ONNXProgram",
    "OnnxExporterError", "OnnxRegistry", "OperatorExportTypes", "SymbolicContext", "TrainingMode",
    "disable_log", "dynamo_export", "enable_fake_mode", "enable_log", "export_to_pretty_string",
    "is_in_onnx_export", "register_custom_op_symbolic", "select_model_mode_for_export",
    "set_training", "unregister_custom_op_symbolic",
)  # fmt: skip
"""What is called the same in `sardonyx`."""


def _attributes() -> dict[str, Any]:
    """What stands behind which name."""
    public = importlib.import_module("sardonyx.public")  # which imports this module
    ours = {name: getattr(public, name) for name in _SHARED_NAMES}
    return {**ours, "export": legacy_calls.export, "_export": legacy_calls.export}


def _submodules() -> dict[str, ModuleType]:
    """What stands behind which module of PyTorch's, whether it has that one still or not."""
    return {
        "errors": errors,
        "symbolic_helper": symbolic_helper,
        "symbolic_registry": symbolic_registry,
        "utils": _utils(),
        "verification": verification,
        "_type_utils": jit_scalar_type,
        "_internal.jit_utils": graph_context,
        **symbolic_opsets.MODULES,
    }


def _utils() -> ModuleType:
    """`sardonyx.utils` with an export that takes the options of the other exporters too."""
    module = ModuleType(utils.__name__, utils.__doc__)
    vars(module).update(vars(utils))
    vars(module).update(export=legacy_calls.export, _export=legacy_calls.export)
    return module


_replaced: list[tuple[Any, str, Any]] = []
"""Where something was put, and what was there before."""


def install() -> None:
    """Put Sardonyx behind `torch.onnx.export` and its companions, until `uninstall()`."""
    if _replaced:
        return
    other = _torch_private.rival_exporter()
    for name, ours in _attributes().items():
        _replace(vars(other), name, ours)
    for name, module in _submodules().items():
        package, _, last = f"{other.__name__}.{name}".rpartition(".")
        _replace(vars(importlib.import_module(package)), last, module)
        _replace(sys.modules, f"{package}.{last}", module)


def uninstall() -> None:
    """Put PyTorch's own exporter back in its place."""
    while _replaced:
        place, name, before = _replaced.pop()
        if before is _ABSENT:
            place.pop(name, None)
        else:
            place[name] = before


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """`install()` for the length of a block."""
    was_installed = bool(_replaced)
    install()
    try:
        yield
    finally:
        if not was_installed:
            uninstall()


def _replace(place: Any, name: str, ours: Any) -> None:
    _replaced.append((place, name, place.get(name, _ABSENT)))
    place[name] = ours
