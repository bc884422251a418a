"""Everything a caller can ask for, in one frozen dataclass."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.serialize.external_data import ExternalData

DEFAULT_OPSET = 20


class TrainingMode(enum.IntEnum):
    """The mode a model is exported in."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """What becomes of operators that ONNX lacks."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


@dataclass(frozen=True, slots=True)
class Options:
    export_params: bool = True
    verbose: bool = False
    training: TrainingMode = TrainingMode.EVAL
    input_names: Sequence[str] = ()
    output_names: Sequence[str] = ()
    opset_version: int = DEFAULT_OPSET
    do_constant_folding: bool = True
    dynamic_axes: Mapping[str, Any] | None = None
    dynamic_shapes: Any = None
    keep_initializers_as_inputs: bool = False
    capture: str = "auto"
    external_data: bool | ExternalData | None = None
    optimize: bool = True
    verify: bool = False
    state_outputs: bool = False
    """Whether inputs and buffers that the model writes become extra outputs."""
    progress: Callable[[str], None] | None = None

    @property
    def keeps_parameters(self) -> bool:
        """Whether every parameter must stay in the file as it is in the model."""
        return not self.export_params or self.keep_initializers_as_inputs


CAPTURES: Collection[str] = ("auto", "trace", "script", "export")
