"""Sardonyx behind PyTorch's own names for exporting: programs that call those need no change."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from sardonyx import _torch_private, errors, options, program, symbolic_registry, verification
from sardonyx.compat import symbolic_helper, utils
from sardonyx.compat.torch_onnx import (
    dynamo_export,
    export_options,
    export_output,
    fake_mode,
    jit_scalar_type,
    legacy_calls,
    log,
    model_mode,
    registry,
    symbolic_opsets,
)
from sardonyx.extend import autograd_function
from sardonyx.extend.symbolic_functions import graph_context, registration

_ABSENT = object()


def _attributes() -> dict[str, Any]:
    """What stands behind which name."""
    return {
        "export": legacy_calls.export,
        "_export": legacy_calls.export,
        "export_to_pretty_string": legacy_calls.export_to_pretty_string,
        "register_custom_op_symbolic": registration.register_custom_op_symbolic,
        "unregister_custom_op_symbolic": registration.unregister_custom_op_symbolic,
        "select_model_mode_for_export": model_mode.select_model_mode_for_export,
        "set_training": model_mode.set_training,
        "is_in_onnx_export": model_mode.is_in_onnx_export,
        "enable_log": log.enable_log,
        "disable_log": log.disable_log,
        "dynamo_export": dynamo_export.dynamo_export,
        "enable_fake_mode": fake_mode.enable_fake_mode,
        "DiagnosticOptions": export_options.DiagnosticOptions,
        "ExportOptions": export_options.ExportOptions,
        "ExportOutput": export_output.ExportOutput,
        "ExportOutputSerializer": export_output.ExportOutputSerializer,
        "ONNXProgram": program.ONNXProgram,
        "SymbolicContext": autograd_function.SymbolicContext,
        "ONNXFakeContext": fake_mode.ONNXFakeContext,
        "OnnxExporterError": errors.OnnxExporterError,
        "InvalidExportOptionsError": errors.InvalidExportOptionsError,
        "CheckerError": errors.CheckerError,
        "OnnxRegistry": registry.OnnxRegistry,
        "JitScalarType": jit_scalar_type.JitScalarType,
        "OperatorExportTypes": options.OperatorExportTypes,
        "TrainingMode": options.TrainingMode,
    }


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
