"""dynamo_export: the model's own arguments, and options in one object."""

from __future__ import annotations

import dataclasses
import inspect
import logging
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import Dim

from sardonyx.api import export
from sardonyx.aten import pytree
from sardonyx.capture.inputs.fake_weights import is_weightless
from sardonyx.compat.torch_onnx import diagnostics
from sardonyx.compat.torch_onnx.diagnostics import Diagnostic, DiagnosticContext
from sardonyx.compat.torch_onnx.export_options import DiagnosticOptions, ExportOptions
from sardonyx.compat.torch_onnx.export_output import ExportOutput
from sardonyx.compat.torch_onnx.registry import OnnxRegistry
from sardonyx.errors import (
    InvalidOptionError,
    SardonyxError,
    UnknownOptionError,
    VerificationError,
)
from sardonyx.option_names import nearest


def dynamo_export(
    model: Any,
    /,
    *model_args: Any,
    export_options: ExportOptions | None = None,
    **model_kwargs: Any,
) -> ExportOutput:
    """Export a model with the arguments that it is called with.

    A failed export raises an `OnnxExporterError`, whose `export_output` has the diagnostics.
    """
    options = export_options or ExportOptions()
    if not isinstance(options, ExportOptions):
        raise InvalidOptionError(f"export_options must be an ExportOptions, not {options!r}")
    _check_names(model, model_kwargs)
    context = DiagnosticContext(options.diagnostic_options or DiagnosticOptions())
    try:
        output = _exported(model, model_args, model_kwargs, options, context)
    except SardonyxError as error:
        context.add(diagnostics.of_error(error))
        error.export_output = ExportOutput(None, context, options.fake_context, error)
        raise
    return output


def _check_names(model: Any, kwargs: Mapping[str, Any]) -> None:
    """Options that stand among the arguments of a model that has none of their names."""
    try:
        taken = inspect.signature(getattr(model, "forward", model)).parameters
    except (TypeError, ValueError):
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
        return
    for name in kwargs.keys() - taken.keys():
        meant = _MEANT.get(name) or nearest(name, ("export_options",))
        if meant is not None:
            raise UnknownOptionError(
                f"dynamo_export() has no option {name}, nor has the model: did you mean {meant}?"
            )


_MEANT = {
    **{
        field.name: f"export_options=ExportOptions({field.name}=...)"
        for field in dataclasses.fields(ExportOptions)
    },
    "opset_version": "export_options=ExportOptions(onnx_registry=OnnxRegistry(...))",
}


def _exported(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: ExportOptions,
    context: DiagnosticContext,
) -> ExportOutput:
    registry = options.onnx_registry or OnnxRegistry()
    more: dict[str, Any] = {}
    if options.dynamic_shapes:
        more["dynamic_shapes"] = [_open_dims(value) for value in (*args, *kwargs.values())]
    if table := registry.translation_table():
        more["custom_translation_table"] = table
    program = export(model, args, kwargs=kwargs, opset_version=registry.opset_version, **more)
    context.add(diagnostics.of_program(program))
    if options.op_level_debug and not is_weightless(model):
        try:
            context.add([Diagnostic("verification", logging.INFO, str(program.verify()))])
        except VerificationError as error:
            context.add([Diagnostic("verification", logging.WARNING, str(error))])
    warned = [d.message for d in context.diagnostics if d.level == logging.WARNING]
    if warned and context.options.warnings_as_errors:
        raise SardonyxError(f"warnings_as_errors: {warned[0]}")
    return ExportOutput(program, context, options.fake_context)


def _open_dims(value: Any) -> Any:
    """Every dim free that the model leaves free, nested as dynamic_shapes is."""
    opened = pytree.open_container(value)
    if opened is not None:
        _, children, _ = opened
        return [_open_dims(child) for child in children]
    if isinstance(value, torch.Tensor):
        return dict.fromkeys(range(value.dim()), Dim.AUTO)
    return None
