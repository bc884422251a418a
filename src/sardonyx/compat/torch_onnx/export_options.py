"""The options of `dynamo_export`."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import get_args, get_type_hints

from sardonyx.compat.torch_onnx.fake_mode import ONNXFakeContext
from sardonyx.compat.torch_onnx.registry import OnnxRegistry
from sardonyx.errors import InvalidOptionError
from sardonyx.option_names import suggests_fields


@suggests_fields
@dataclass(frozen=True)
class DiagnosticOptions:
    """`verbosity_level`: the least level of logging that diagnostics are kept of.
    `warnings_as_errors`: whether a diagnostic that warns ends the export."""

    verbosity_level: int = logging.INFO
    warnings_as_errors: bool = False


@suggests_fields
@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """How `dynamo_export` exports.

    `dynamic_shapes`: whether every dim of the inputs may vary that the model lets vary.
    `op_level_debug`: whether to run the result in ONNX Runtime against the model; what differs is
    among the diagnostics.
    `fake_context`: what `enable_fake_mode` gave, for a model that was made there.
    `onnx_registry`: ONNX functions for operators, and the opset.
    `diagnostic_options`: what becomes of diagnostics.
    """

    dynamic_shapes: bool | None = None
    op_level_debug: bool | None = None
    fake_context: ONNXFakeContext | None = None
    onnx_registry: OnnxRegistry | None = None
    diagnostic_options: DiagnosticOptions | None = None

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(ExportOptions).items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                wanted = get_args(kind)[0].__name__
                raise InvalidOptionError(f"{name} must be a {wanted}, not a {type(value).__name__}")
