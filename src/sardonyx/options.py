"""Everything a caller can ask for, in one frozen dataclass."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from sardonyx.errors import InvalidOptionError
from sardonyx.option_names import suggests_fields

DEFAULT_OPSET = 20
FIRST_OPSET_WITH_FUNCTIONS = 15
"""It came with version 8 of the file format."""
CAPTURES: Collection[str] = ("auto", "export", "trace", "script")
TARGETS: Collection[str] = ("onnxruntime", "onnx")


class _Choice(enum.IntEnum):
    """An option that is one of several, of which torch.onnx has an enum too."""

    @classmethod
    def _meant(cls, given: Any) -> Self | None:
        name = getattr(given, "name", given)
        if isinstance(name, str) and name in cls.__members__:
            return cls[name]
        return cls(given) if type(given) is int and given in set(cls) else None

    @classmethod
    def _listed(cls) -> str:
        return ", ".join(f"{cls.__name__}.{member.name}" for member in cls)


class TrainingMode(_Choice):
    """The mode a model is exported in."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2

    @classmethod
    def of(cls, given: Any) -> TrainingMode:
        """The mode that `given` means: one of ours, its number, or torch.onnx's of that name; a
        bool, which it was once, says whether to train."""
        if isinstance(given, bool):
            return cls.TRAINING if given else cls.EVAL
        mode = cls._meant(given)
        if mode is None:
            raise InvalidOptionError(f"training={given!r} is no mode: give one of {cls._listed()}")
        return mode


class OperatorExportTypes(_Choice):
    """What becomes of operators that ONNX lacks."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3
    RAW = 4

    @classmethod
    def of(cls, given: Any) -> OperatorExportTypes:
        """The type that `given` means: one of ours, its number, or torch.onnx's of that name."""
        kind = cls._meant(given)
        if kind is None:
            raise InvalidOptionError(
                f"operator_export_type={given!r} is not known: give one of {cls._listed()}"
            )
        return kind


@suggests_fields
@dataclass(frozen=True)
class ExternalData:
    """How weights are kept outside of the model file.

    `size_threshold`: tensors of fewer bytes stay in the model file.
    `location`: the name of the weights file, in the model's folder; `<model file>.data` if None.
    """

    size_threshold: int = 1024
    location: str | None = None

    def __post_init__(self) -> None:
        if type(self.size_threshold) is not int or self.size_threshold < 0:
            raise InvalidOptionError(
                "external_data: size_threshold must be a number of bytes and not negative, got"
                f" {self.size_threshold!r}"
            )
        name = self.location
        if not isinstance(name, str | None):
            raise InvalidOptionError(f"external_data: location must be a name, got {name!r}")
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
    target: str = "onnxruntime"
    external_data: bool | ExternalData | None = None
    optimize: bool = True
    verify: bool = False
    rtol: float | None = None
    atol: float | None = None
    state_outputs: bool = False
    """Whether inputs and buffers that the model writes become extra outputs."""
    custom_opsets: Mapping[str, int] = field(default_factory=dict)
    export_modules_as_functions: bool | Collection[type] = False
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX
    autograd_inlining: bool = True
    """Whether torch.autograd.Functions without a symbolic function are written as what they run."""
    custom_translation_table: Mapping[Any, Any] | None = None
    custom_op_libraries: Sequence[str | os.PathLike[str]] = ()
    """Libraries of operators that ONNX Runtime loads before it runs the file."""
    progress: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        for option in fields(self):
            given = getattr(self, option.name)
            if option.type == "bool" and not isinstance(given, bool):
                raise InvalidOptionError(f"{option.name} must be True or False, not {given!r}")
        for name in ("input_names", "output_names"):
            _check_names(name, getattr(self, name))
        for name in ("rtol", "atol"):
            _check_tolerance(name, getattr(self, name))
        for name, known in (("capture", CAPTURES), ("target", TARGETS)):
            if (given := getattr(self, name)) not in known:
                raise InvalidOptionError(f"{name}={given!r} is not known: {', '.join(known)}")
        if not isinstance(self.dynamic_axes, Mapping | None):
            raise InvalidOptionError(
                "dynamic_axes must be a dict of input names to axes, as"
                f' {{"x": {{0: "batch"}}}}, not {self.dynamic_axes!r}'
            )
        check_external_data(self.external_data)
        _check_custom_opsets(self.custom_opsets)
        _check_modules_as_functions(self.export_modules_as_functions, self.opset_version)
        if self.progress is not None and not callable(self.progress):
            raise InvalidOptionError(f"progress must be a function, not {self.progress!r}")

    @property
    def inlines_autograd_functions(self) -> bool:
        """Whether a `torch.autograd.Function` becomes the operators that its forward runs."""
        return self.autograd_inlining and self.operator_export_type not in (
            OperatorExportTypes.ONNX_ATEN_FALLBACK,
            OperatorExportTypes.ONNX_FALLTHROUGH,
        )

    @property
    def keeps_parameters(self) -> bool:
        """Whether every parameter must stay in the file as it is in the model."""
        return not self.export_params or self.keep_initializers_as_inputs


def check_external_data(given: object) -> None:
    if not isinstance(given, bool | ExternalData | None):
        raise InvalidOptionError(
            f"external_data must be True, False, None or a sardonyx.ExternalData, not {given!r}"
        )


def _check_custom_opsets(given: object) -> None:
    if not isinstance(given, Mapping):
        raise InvalidOptionError(
            'custom_opsets must be a dict of domains to versions, as {"my_domain": 2}, not'
            f" {given!r}"
        )
    for domain, version in given.items():
        if not isinstance(domain, str) or not domain or domain in ("onnx", "ai.onnx"):
            raise InvalidOptionError(
                f"custom_opsets: {domain!r} is no custom domain (opset_version is ONNX's own)"
            )
        if type(version) is not int or version < 1:
            raise InvalidOptionError(
                f"custom_opsets: the version of {domain!r} must be a number from 1 on, not"
                f" {version!r}"
            )


def _check_modules_as_functions(given: object, opset: int) -> None:
    if isinstance(given, str) or not isinstance(given, bool | Collection):
        raise InvalidOptionError(
            "export_modules_as_functions must be True, False or a set of module classes, not"
            f" {given!r}"
        )
    for kind in () if isinstance(given, bool) else given:
        if not _is_module_class(kind):
            raise InvalidOptionError(
                f"export_modules_as_functions must hold classes of modules, not {kind!r}"
            )
    if given and opset < FIRST_OPSET_WITH_FUNCTIONS:
        raise InvalidOptionError(
            f"export_modules_as_functions needs opset_version {FIRST_OPSET_WITH_FUNCTIONS} or"
            f" later, not {opset}: files of earlier opsets have no functions"
        )


def _is_module_class(kind: object) -> bool:
    from torch.nn import Module  # here, as the command line reads options without torch

    return isinstance(kind, type) and issubclass(kind, Module)


def _check_names(option: str, names: object) -> None:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidOptionError(f"{option} must be a list of names, not {names!r}")
    for name in names:
        if not isinstance(name, str):
            raise InvalidOptionError(f"{option} must hold names, not {name!r}")


def _check_tolerance(option: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise InvalidOptionError(f"{option} must be a number and not negative, not {value!r}")
