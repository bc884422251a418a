"""`export` and its kin with the arguments that all generations of `torch.onnx` took."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

from sardonyx import api
from sardonyx.errors import (
    DynamicDimError,
    InvalidOptionError,
    OnnxExporterWarning,
    UnknownNameError,
)
from sardonyx.option_names import OF_OTHER_EXPORTERS, refuse_unknown
from sardonyx.options import OperatorExportTypes
from sardonyx.serialize.text import to_text


def export(model: Any, args: Any = (), f: Any = None, *more: Any, **given: Any) -> Any:
    """`sardonyx.export` for callers of `torch.onnx.export` of any version: options of that exporter
    alone are accepted, and a warning explains what became of them. A name in `dynamic_axes` that
    does not exist, and a dim there that the model fixes, are a warning, too."""
    options = _options_here(_by_name(more, _places(more), given))
    while True:
        try:
            return api.export(model, args, f, **options)
        except (UnknownNameError, DynamicDimError) as error:
            left = _axes_without(options.get("dynamic_axes"), error)
            if left is None:
                raise
            warnings.warn(f"dynamic_axes: {error.headline}", OnnxExporterWarning, 2)
            options["dynamic_axes"] = left


def _signature() -> inspect.Signature:
    """Programs look in it for the options that this version of the exporter has."""
    known = inspect.signature(api.export).parameters.values()
    dynamo = inspect.Parameter("dynamo", inspect.Parameter.KEYWORD_ONLY, default=True)
    return inspect.Signature([*known, dynamo])


export.__signature__ = _signature()  # type: ignore[attr-defined]


def _axes_without(
    axes: Any, error: UnknownNameError | DynamicDimError
) -> dict[str, dict[int, Any] | list[int]] | None:
    """`dynamic_axes` without what the error is about; None where that is not in it."""
    if not isinstance(axes, Mapping):
        return None
    if isinstance(error, UnknownNameError):
        return {name: dims for name, dims in axes.items() if name != error.name}
    name, axis = error.dim or ("", 0)
    if name not in axes or axis not in axes[name]:
        return None
    dims = axes[name]
    if isinstance(dims, Mapping):
        return {**axes, name: {a: label for a, label in dims.items() if a != axis}}
    return {**axes, name: [a for a in dims if a != axis]}


def export_to_pretty_string(model: Any, args: Any = (), *more: Any, **options: Any) -> str:
    """The graph that `export` would write, in its textual form.

    Takes the options of `export`, and by their places what `torch.onnx` took: `f` may be left out,
    and `export_type`, `google_printer` and `add_node_names` are accepted.
    """
    names: tuple[str, ...] = _POSITIONAL_OF_TEXT
    if more and not isinstance(more[0], bool):  # the file that was named once and never written
        more = more[1:]
        names = (*names[:7], "example_outputs", *names[7:])
    options.pop("f", None)
    options = _options_here(_by_name(more, names, options))
    refuse_unknown("export_to_pretty_string", options, _PARAMETERS)
    return to_text(api.export(model, args, **options).model)


def _options_here(options: dict[str, Any]) -> dict[str, Any]:
    """The options as `sardonyx.export` has them, with a warning for each that it has not."""
    for name in [name for name in options if name in OF_OTHER_EXPORTERS]:
        value = options.pop(name)
        if not any(value is each for each in _WITHOUT_EFFECT.get(name, (None, False))):
            warnings.warn(f"{name}: {OF_OTHER_EXPORTERS[name]}", OnnxExporterWarning, 3)
    if options.pop("use_external_data_format", False):
        options.setdefault("external_data", True)
    kinds = {
        OperatorExportTypes.ONNX_ATEN: options.pop("aten", False),
        OperatorExportTypes.RAW: options.pop("export_raw_ir", False),
    }
    default = next((kind for kind, is_asked in kinds.items() if is_asked), OperatorExportTypes.ONNX)
    for name in ("operator_export_type", "verbose", "training"):  # None stood for the default
        if name in options and options[name] is None:
            del options[name]
    return {"operator_export_type": default, **options}


_PARAMETERS = inspect.signature(api.export).parameters
_POSITIONAL = tuple(p.name for p in _PARAMETERS.values() if p.kind is not p.KEYWORD_ONLY)[3:]
"""Those after `model`, `args` and `f`, in the places that PyTorch gave them last."""
_POSITIONAL_OF_1_10 = (
    *_POSITIONAL[:7],
    "_retain_param_name",
    "do_constant_folding",
    "example_outputs",
    "strip_doc_string",
    "dynamic_axes",
    "keep_initializers_as_inputs",
    "custom_opsets",
    "enable_onnx_checker",
    "use_external_data_format",
)
_POSITIONAL_OF_1_X = (
    *_POSITIONAL[:5],
    "aten",
    "export_raw_ir",
    *_POSITIONAL_OF_1_10[5:],
)
_POSITIONAL_OF_TEXT = (
    *_POSITIONAL[:6],
    "export_type",
    "google_printer",
    "opset_version",
    "keep_initializers_as_inputs",
    "custom_opsets",
    "add_node_names",
    "do_constant_folding",
    "dynamic_axes",
)

_WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "dynamo": (None, True, False),
    "strip_doc_string": (None, True),
    "enable_onnx_checker": (None, True, False),
    "onnx_shape_inference": (None, True),
    "add_node_names": (None, True),
    "_retain_param_name": (None, True),
}
"""Values that ask for what is done anyway; None and False for the others."""


def _places(positional: tuple[Any, ...]) -> tuple[str, ...]:
    """The names of options by their places, in the generation that such a call is of: bools stand
    where the later ones have an enum, or a dict."""
    if any(isinstance(option, bool) for option in positional[5:6]):
        return _POSITIONAL_OF_1_X
    if any(isinstance(option, bool) for option in positional[8:9]):
        return _POSITIONAL_OF_1_10
    return _POSITIONAL


def _by_name(
    positional: tuple[Any, ...], names: tuple[str, ...], given: Mapping[str, Any]
) -> dict[str, Any]:
    if len(positional) > len(names):
        raise InvalidOptionError(
            f"these are {len(positional)} options by their place, and there are {len(names)}:"
            f" {', '.join(names)}"
        )
    named = dict(zip(names, positional, strict=False))
    twice = [name for name in named if name in given]
    if twice:
        raise InvalidOptionError(f"{twice[0]} is given twice: by its place and by its name")
    return {**named, **given}
