"""Sardonyx behind PyTorch's own names for exporting: programs that call those need no change."""

from __future__ import annotations

import contextlib
import importlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from sardonyx import _torch_private, api, errors, options, program
from sardonyx.errors import InvalidOptionError, OnnxExporterWarning
from sardonyx.extend import custom_symbolics
from sardonyx.options import OperatorExportTypes
from sardonyx.torch_onnx import (
    dynamo_export,
    export_options,
    export_output,
    fake_mode,
    jit_scalar_type,
    log,
    model_mode,
    registry,
)

_ABSENT = object()


def export(model: Any, args: Any = (), f: Any = None, *more: Any, **given: Any) -> Any:
    """`sardonyx.export` for callers of `torch.onnx.export` of any version: options of that exporter
    alone are accepted, and a warning explains what became of them."""
    named = _by_name(more)
    twice = [name for name in named if name in given]
    if twice:
        raise InvalidOptionError(f"{twice[0]} is given twice: by its place and by its name")
    asked = {**named, **given}
    for name in [name for name in asked if name in _ELSEWHERE]:
        value = asked.pop(name)
        if not any(value is each for each in _WITHOUT_EFFECT.get(name, (None, False))):
            warnings.warn(f"{name}: {_ELSEWHERE[name]}", OnnxExporterWarning, 2)
    if asked.pop("use_external_data_format", False):
        asked.setdefault("external_data", True)
    asked["operator_export_type"] = _operator_export_type(
        asked.get("operator_export_type"), aten=bool(asked.pop("aten", False))
    )
    for name in ("verbose", "training"):  # None stood for the default
        if asked.get(name, _ABSENT) is None:
            del asked[name]
    return api.export(model, args, f, **asked)


_POSITIONAL = (
    "export_params",
    "verbose",
    "training",
    "input_names",
    "output_names",
    "operator_export_type",
    "opset_version",
    "do_constant_folding",
    "dynamic_axes",
    "keep_initializers_as_inputs",
    "custom_opsets",
    "export_modules_as_functions",
    "autograd_inlining",
)

_ELSEWHERE = {
    "dynamo": "Sardonyx records a model in the way that suits it; capture= asks for one",
    "fallback": "capture='auto', the default, tries torch.export and then a trace by itself",
    "report": "the program that export returns has a report()",
    "profile": "the program that export returns has stage_seconds",
    "dump_exported_program": "there is none to dump; the program's to_text() prints the graph",
    "artifacts_dir": "nothing is written but the model itself",
    "example_outputs": "outputs are inferred, no example of them is needed",
    "strip_doc_string": "source lines are in the nodes' metadata and never in doc strings",
    "enable_onnx_checker": "every file is valid at its opset, or the export fails",
    "onnx_shape_inference": "shapes come from PyTorch and are always in the file",
    "propagate": "parameters are always exported with their values",
    "_retain_param_name": "parameters always keep their names",
}
"""Options of other exporters, and what to know of them here."""

_WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "dynamo": (None, True, False),
    "strip_doc_string": (None, True),
    "enable_onnx_checker": (None, True, False),
    "onnx_shape_inference": (None, True),
    "_retain_param_name": (None, True),
}
"""Values that ask for what is done anyway; None and False for the others."""


def _by_name(positional: tuple[Any, ...]) -> dict[str, Any]:
    if len(positional) > len(_POSITIONAL):
        raise InvalidOptionError(f"export takes {len(_POSITIONAL) + 3} arguments by their place")
    return dict(zip(_POSITIONAL, positional, strict=False))


def _operator_export_type(given: Any, *, aten: bool) -> OperatorExportTypes:
    """Ours of the name that PyTorch's has."""
    if given is None:
        return OperatorExportTypes.ONNX_ATEN if aten else OperatorExportTypes.ONNX
    name = str(getattr(given, "name", given))
    if name not in OperatorExportTypes.__members__:
        raise InvalidOptionError(f"operator_export_type={given!r} is not known")
    return OperatorExportTypes[name]


def _attributes() -> dict[str, Any]:
    """What stands behind which name."""
    return {
        "export": export,
        "export_to_pretty_string": api.export_to_pretty_string,
        "register_custom_op_symbolic": custom_symbolics.register_custom_op_symbolic,
        "unregister_custom_op_symbolic": custom_symbolics.unregister_custom_op_symbolic,
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
        "ONNXFakeContext": fake_mode.ONNXFakeContext,
        "OnnxExporterError": errors.OnnxExporterError,
        "InvalidExportOptionsError": errors.InvalidExportOptionsError,
        "CheckerError": errors.CheckerError,
        "OnnxRegistry": registry.OnnxRegistry,
        "JitScalarType": jit_scalar_type.JitScalarType,
        "OperatorExportTypes": options.OperatorExportTypes,
        "TrainingMode": options.TrainingMode,
    }


_SUBMODULES = ("errors", "symbolic_helper", "utils")
_replaced: list[tuple[Any, str, Any]] = []
"""Where something was put, and what was there before."""


def install() -> None:
    """Put Sardonyx behind `torch.onnx.export` and its companions, until `uninstall()`."""
    if _replaced:
        return
    other = _torch_private.rival_exporter()
    for name, ours in _attributes().items():
        _replace(vars(other), name, ours)
    for name in _SUBMODULES:
        ours = importlib.import_module(f"sardonyx.{name}")
        _replace(vars(other), name, ours)
        _replace(sys.modules, f"{other.__name__}.{name}", ours)


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
