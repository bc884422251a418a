"""onnxscript functions: as functions of the file, and as the forms of operators."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir

from sardonyx.aten.schema import default_arguments
from sardonyx.capture.quantized.opaque_calls import QuantizedArgument
from sardonyx.errors import InvalidOptionError, OnnxExporterWarning, SymbolicFunctionError
from sardonyx.extend.recorded_values import RecordedValue
from sardonyx.extend.symbolic_functions.call_arguments import arguments_for
from sardonyx.extend.symbolic_functions.calls import (
    bound_results,
    context_for,
    errors_located,
    symbolic_form,
)
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.node_attributes import letter_of
from sardonyx.extend.symbolic_functions.quantized_calls import flattened
from sardonyx.lower.custom_lowerings import Call, CustomForm
from sardonyx.lower.provenance import WRITTEN_AT
from sardonyx.lower.registry import HAVE_NO_MEANING_IN_ONNX, Refusal
from sardonyx.lower.values import Tensor


def is_onnx_function(given: Any) -> bool:
    """Whether it is what `@onnxscript.script(...)` makes of a function."""
    return hasattr(given, "to_function_proto") and hasattr(given, "function_ir")


def functions_of(given: Any) -> list[ir.Function]:
    """An onnxscript function as a function of the file, a copy that is ours to change, and after it
    those that it calls."""
    if not is_onnx_function(given):
        raise SymbolicFunctionError(
            f"{given!r} is no onnxscript function: decorate it with @onnxscript.script(opset)"
        )
    called = given.function_ir.get_called_functions()
    return [_copy(given), *map(_copy, called.values())]


def _copy(given: Any) -> ir.Function:
    function = ir.serde.deserialize_function(given.to_function_proto())
    version = function.opset_imports.get("")
    for node in function.all_nodes():
        if version is not None:
            node.meta[WRITTEN_AT] = version
    return function


# -- translation tables ---------------------------------------------------------------------------


def translations(table: Mapping[Any, Any] | None, opset: int) -> dict[str, CustomForm]:
    """`custom_translation_table` of an export: the form of each operator in it, by name."""
    if table is None:
        return {}
    if not isinstance(table, Mapping):
        raise InvalidOptionError(
            "custom_translation_table must be a dict of operators to functions, as"
            f" {{torch.ops.aten.selu.default: selu}}, not {table!r}"
        )
    of_numbers = [key for key in table if getattr(key, "__module__", "") in _OF_NUMBERS]
    if of_numbers:
        names = ", ".join(key.__name__ for key in of_numbers)
        warnings.warn(
            f"custom_translation_table: {names} of sizes and numbers is not taken from it: Sardonyx"
            " computes them as Python does",
            OnnxExporterWarning,
            2,
        )
    operators = {key: value for key, value in table.items() if key not in of_numbers}
    return {operator_key(key): translation(value, opset) for key, value in operators.items()}


_OF_NUMBERS = ("_operator", "builtins", "math")
"""Modules of Python's own operators, which torch.export has as nodes."""


def operator_key(operator: Any) -> str:
    """The name that forms are found by: of `torch.ops.aten.selu.default`, `torch.ops.aten.selu`."""
    if isinstance(operator, str) and "::" in operator:
        return operator.removesuffix(".default")
    schema = getattr(operator, "_schema", None)
    if schema is not None:
        overload = schema.overload_name
        return f"{schema.name}.{overload}" if overload else str(schema.name)
    packet = getattr(operator, "_qualified_op_name", None)
    if isinstance(packet, str):
        return packet
    raise InvalidOptionError(
        f"custom_translation_table: {operator!r} is no operator; write torch.ops.aten.selu.default"
    )


def translation(function: Any, opset: int) -> CustomForm:
    """The form that a function of a translation table gives: an onnxscript function, a Python
    function of onnxscript's operators, or a symbolic function (its first argument is `g`)."""
    if isinstance(function, Sequence) and function:
        function = function[0]
    if is_onnx_function(function):
        return _function_form(function, opset)
    if not callable(function):
        raise InvalidOptionError(f"custom_translation_table: {function!r} is no function")
    names = list(inspect.signature(function).parameters)
    if names[:1] == ["g"]:
        return symbolic_form(function, opset)
    return _recorded_form(function, opset)


def _function_form(given: Any, opset: int) -> CustomForm:
    function = functions_of(given)[0]
    inputs = [value.name or "" for value in function.inputs]
    attributes = list(function.attributes)

    def form(call: Call) -> list[Tensor | None]:
        g = context_for(call, opset)
        with errors_located(given.function, call, opset):
            operands, settings = _sorted_arguments(call, inputs, attributes)
            results = g.onnxscript_op(given, *map(g.values.of_argument, operands), **settings)
            return bound_results(g, call, results)

    return form


_DEFAULT_AXIS = 1
"""Of channels, for QuantizeLinear and DequantizeLinear."""


def _sorted_arguments(
    call: Call, inputs: Sequence[str], attributes: Sequence[str]
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of the operator as inputs and attributes of the function: attributes by their
    names, inputs by theirs if all are the operator's, else in order."""
    arguments = flattened(call.arguments)
    settings = {}
    for name in attributes:
        if name in arguments:
            value = arguments.pop(name)
            if value is not None:
                settings[f"{name}_{letter_of(value) or 'i'}"] = value
    if all(name in arguments for name in inputs):
        operands = [arguments.pop(name) for name in inputs]
    else:
        names = list(arguments)[: len(inputs)]
        operands = [arguments.pop(name) for name in names]
    defaults = default_arguments(call.node.op)
    axes = {f"{n}_axis" for n, a in call.arguments.items() if isinstance(a, QuantizedArgument)}
    for name, value in arguments.items():
        if name in HAVE_NO_MEANING_IN_ONNX or (name in axes and value == _DEFAULT_AXIS):
            continue
        if name not in defaults or defaults[name] != value:
            raise Refusal(f"the function does not take {name}, which is {value}")
    return operands, settings


def _recorded_form(function: Callable[..., Any], opset: int) -> CustomForm:
    """A Python function of onnxscript's operators, run once on values that record its calls."""

    def form(call: Call) -> list[Tensor | None]:
        g = context_for(call, opset)
        plain = getattr(function, "func", function)
        parameters = list(inspect.signature(plain).parameters.values())
        args, kwargs = arguments_for(parameters, call.arguments, default_arguments(call.node.op))
        with errors_located(plain, call, opset), _recording(g):
            results = plain(
                *(_recordable(g, a) for a in args),
                **{name: _recordable(g, a) for name, a in kwargs.items()},
            )
            return bound_results(g, call, _plain_values(results))

    return form


def _recordable(g: GraphContext, argument: Any) -> Any:
    """Tensors and computed sizes as values that record; what is known stays Python."""
    if isinstance(argument, Tensor):
        return RecordedValue(g, g.values.of_tensor(argument))
    if isinstance(argument, list):
        return [_recordable(g, item) for item in argument]
    if isinstance(argument, QuantizedArgument):
        return tuple(_recordable(g, part) for part in argument.parts)
    value = g.values.of_argument(argument)
    if value.is_computed_size:
        return RecordedValue(g, g.values.of_tensor(g.as_tensor(value)))
    return argument


def _plain_values(results: Any) -> Any:
    if isinstance(results, (list, tuple)):
        return [_plain_values(item) for item in results]
    return results.value if isinstance(results, RecordedValue) else results


@contextmanager
def _recording(g: GraphContext) -> Iterator[None]:
    try:
        from onnxscript import evaluator
    except ImportError:  # then the function cannot be one of its operators
        yield
        return
    with evaluator.default_as(_Recorder(g)):
        yield


class _Recorder:
    """The evaluator of onnxscript while a function is recorded."""

    def __init__(self, g: GraphContext) -> None:
        self._g = g

    def eval_op(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        name = f"{op.domain}::{op.name}" if op.domain else op.name
        formals = [] if op.op_signature is None else [p.name for p in op.op_signature.inputs]
        operands, settings = _sorted_by_name(formals, args, kwargs)
        version = op.opset.version if not op.domain else None
        made = self._g.written_at(version).op(
            name, *operands, outputs=_output_count(op, settings), **settings
        )
        return self._recorded(made)

    def eval_function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        formals = [value.name for value in functions_of(function)[0].inputs]
        operands, settings = _sorted_by_name(formals, args, kwargs)
        return self._recorded(self._g.onnxscript_op(function, *operands, **settings))

    def _recorded(self, made: Any) -> Any:
        if isinstance(made, tuple):
            return tuple(RecordedValue(self._g, value) for value in made)
        return RecordedValue(self._g, made)


def _sorted_by_name(
    formals: Sequence[str | None], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The inputs of a call, those given by name in their places, and its attributes."""
    operands = list(args)
    settings: dict[str, Any] = {}
    for key, value in kwargs.items():
        if key in formals:
            place = formals.index(key)
            operands += [None] * (place + 1 - len(operands))
            operands[place] = value
        elif value is not None:
            settings[f"{key}_{letter_of(value) or 'i'}"] = value
    return _plain_values(operands), settings


def _output_count(op: Any, settings: Mapping[str, Any]) -> int:
    if op.name == "Split" and "num_outputs_i" in settings:
        return int(settings["num_outputs_i"])
    if op.op_schema is None:
        return 1
    required = [o for o in op.op_schema.outputs if o.option.name not in ("Optional",)]
    return max(len(required), 1)
