"""Everything a caller can ask for, in one frozen dataclass."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.errors import InvalidOptionError

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


@dataclass(frozen=True)
class ExternalData:
    """How weights are kept outside of the model file.

    `size_threshold`: tensors of fewer bytes stay in the model file.
    `location`: the name of the weights file, in the model's folder; `<model file>.data` if None.
    """

    size_threshold: int = 1024
    location: str | None = None

    def __post_init__(self) -> None:
        if self.size_threshold < 0:
            raise InvalidOptionError(
                f"external_data: size_threshold must not be negative, got {self.size_threshold}"
            )
        name = self.location
        if name is not None and (not name or name in (".", "..") or set(name) & set("/\\:\0")):
            raise InvalidOptionError(
                f"external_data: location must be a plain file name, got {name!r}: "
                "the weights lie in the model's own folder"
            )

    def file_name(self, model_path: str) -> str:
        model_name = os.path.basename(model_path)
        name = self.location or f"{model_name}.data"
        if name == model_name:
            raise InvalidOptionError(
                f"external_data: the weights cannot go into the model file itself ({name})"
            )
        return name


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


CAPTURES: Collection[str] = ("auto", "export", "trace")
