"""`register_custom_op_symbolic`: the functions that users registered, by operator and opset."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sardonyx.capture.quantized.opaque_calls import KeptCalls
from sardonyx.errors import InvalidOptionError, OnnxExporterWarning, format_message
from sardonyx.extend.onnx_operators import onnx_operator_forms
from sardonyx.extend.symbolic_functions.calls import symbolic_form
from sardonyx.extend.symbolic_functions.mutating_operators import with_training
from sardonyx.extend.symbolic_functions.quantized_calls import quantized_forms
from sardonyx.lower.custom_lowerings import CustomForm, CustomForms, Fallback
from sardonyx.lower.plugins import load_plugins
from sardonyx.lower.registry import LIBRARY

PYTHON_OP = "prim::PythonOp"
_NAME = re.compile(r"(?P<domain>[a-zA-Z][\w-]*)::(?P<name>[a-zA-Z_-][\w-]*)(\.[a-zA-Z_]\w*)?")
_registered: dict[str, dict[int, Callable[..., Any]]] = {}


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Let `symbolic_fn(g, *arguments)` write an operator in ONNX, in place of Sardonyx's own form.

    Args:
        symbolic_name: `domain::name` as `aten::elu` or `my_ops::foo`; with an overload
            (`aten::add.Tensor`) for that one alone.
        symbolic_fn: Gets the graph and the operator's arguments, and returns what it wrote. For
            operators of `quantized::`, a quantized tensor is a tuple (integers, scale, zero_point),
            with the axis behind it where it is quantized per channel, as the helpers of
            `symbolic_helper` take and make it. In the place of packed parameters it gets what they
            hold: weight (quantized) and bias (zeros where the layer has none); of convolutions then
            stride, padding, output_padding (where transposed), dilation and groups; of embeddings
            the integers of the weight, and columns of the scale and zero point of its rows.
        opset_version: The first opset that it serves; it serves the later ones too, up to one that
            another function is registered for.
    """
    name = checked_name(symbolic_name)
    if not callable(symbolic_fn):
        raise InvalidOptionError(f"{symbolic_name}: {symbolic_fn!r} is no function")
    opset = _checked_opset(opset_version)
    _registered.setdefault(name, {})[opset] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Take a registered function back; does nothing where none is registered for that opset."""
    name = checked_name(symbolic_name)
    functions = _registered.get(name, {})
    functions.pop(_checked_opset(opset_version), None)
    if not functions:
        _registered.pop(name, None)


def checked_name(symbolic_name: Any) -> str:
    if not isinstance(symbolic_name, str):
        raise InvalidOptionError(
            f"an operator's name is text like aten::elu, not {symbolic_name!r}"
        )
    if symbolic_name in (PYTHON_OP, "::prim_PythonOp"):
        return PYTHON_OP
    name = f"aten{symbolic_name}" if symbolic_name.startswith("::") else symbolic_name
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidOptionError(
            f"{symbolic_name!r} is no name of an operator: it is domain::name, each beginning with"
            " a letter, of letters, digits, - and _"
        )
    if match["domain"] in ("onnx", "prim"):
        raise InvalidOptionError(
            f"{symbolic_name!r}: the domain {match['domain']} is not open for registration"
        )
    if name.partition(".")[0].endswith("_") and not match["name"].endswith("__"):
        raise InvalidOptionError(
            f"{symbolic_name!r} writes its argument: exports make writes pure before they look for"
            f" a function, so register {name.partition('.')[0].removesuffix('_')!r}"
        )
    return name.removesuffix(".default")


def _checked_opset(opset: Any) -> int:
    if type(opset) is not int or opset < 1:
        raise InvalidOptionError(f"opset_version must be a number from 1 on, not {opset!r}")
    return opset


def registered_names() -> dict[str, dict[int, Callable[..., Any]]]:
    """All registered functions, by operator and opset."""
    return {name: dict(functions) for name, functions in sorted(_registered.items())}


def registered_function(name: str, opset: int) -> Callable[..., Any] | None:
    """The function that serves `opset`: the one of the newest opset up to it."""
    functions = _registered.get(name, {})
    served = [version for version in functions if version <= opset]
    return functions[max(served)] if served else None


def custom_forms(
    opset: int,
    domain_versions: Mapping[str, int],
    translations: Mapping[str, CustomForm],
    trainable: frozenset[str] = frozenset(),
    fallback: Fallback | None = None,
    kept: KeptCalls | None = None,
) -> CustomForms:
    """The forms that this export uses before the library's; `translations` before all. `kept`
    has the calls that the capture kept whole for them."""
    forms: dict[str, CustomForm] = {}
    hints: dict[str, str] = {}
    for name in _registered:
        function = registered_function(name, opset)
        if _gives_way(function, name):
            continue
        if function is not None:
            forms[name] = symbolic_form(function, opset)
        else:
            first = min(_registered[name])
            hints[name] = (
                f"its symbolic function is registered for opset {first} and later, and this is an"
                f" export at opset {opset}"
            )
    versions = dict(domain_versions)
    called = onnx_operator_forms(opset, versions)
    served = with_training({**called, **forms, **translations})
    if kept is not None:
        _warn_of_unused(kept)
        served |= quantized_forms(kept, CustomForms(served).find)
    return CustomForms(served, versions, hints, trainable, fallback)


def _gives_way(function: Callable[..., Any] | None, name: str) -> bool:
    """Whether it is what a package registers with torch.onnx for its own operators, as torchvision
    does, and Sardonyx has a form of them: which one is used must not depend on the order of
    imports."""
    package = name.partition("::")[0]
    if str(getattr(function, "__module__", "")).partition(".")[0] != package:
        return False
    load_plugins([name], LIBRARY)
    return name in LIBRARY


def _warn_of_unused(kept: KeptCalls) -> None:
    for name, location in kept.not_kept.items():
        told = (
            f"the function for {name} is not used: among operators on quantized tensors it is"
            " where they give one tensor and write none"
        )
        warnings.warn(
            format_message(told, [("first", location.describe())]), OnnxExporterWarning, 2
        )


def operators_kept(opset: int, translated: Collection[str]) -> KeptCalls:
    """For a capture: the operators on quantized tensors that have a function, or a translation of
    that name, stay whole."""

    def is_kept(name: str) -> bool:
        names = (name, name.partition(".")[0])
        return any(n in translated or registered_function(n, opset) is not None for n in names)

    return KeptCalls(is_kept)
