"""A symbolic function as the form of an operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Dim, Value
from sardonyx.aten.schema import default_arguments
from sardonyx.errors import SardonyxError, SymbolicFunctionError, first_line
from sardonyx.extend.gradients import requires_grad
from sardonyx.extend.symbolic_functions.call_arguments import arguments_for
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.graph_values import Values
from sardonyx.extend.symbolic_functions.quantized_calls import QuantizedCall
from sardonyx.extend.symbolic_functions.values import SymbolicValue, node_of_call
from sardonyx.lower.custom_lowerings import Call, CustomForm
from sardonyx.lower.registry import Refusal
from sardonyx.lower.values import Tensor
from sardonyx.options import DEFAULT_OPSET

_reasons: ContextVar[list[str] | None] = ContextVar("reasons", default=None)
_opset: ContextVar[int] = ContextVar("opset", default=DEFAULT_OPSET)


def exported_opset() -> int:
    """The opset of the export that the running symbolic function serves."""
    return _opset.get()


def note_reason(reason: str) -> None:
    """Remember why the symbolic function that is running cannot convert its operator."""
    noted = _reasons.get()
    if noted is not None:
        noted.append(reason)


def symbolic_form(function: Callable[..., Any], opset: int) -> CustomForm:
    """`function(g, *arguments)` as the form of an operator at `opset`."""

    def form(call: Call) -> list[Tensor | None]:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        args, kwargs = arguments_for(parameters, call.arguments, default_arguments(call.node.op))
        g = context_for(call, opset)
        operands = [g, *map(g.values.of_argument, args)]
        named = {name: g.values.of_argument(a) for name, a in kwargs.items()}
        with errors_located(function, call, opset):
            return bound_results(g, call, results_of(function, g, operands, named))

    return form


def results_of(
    function: Callable[..., Any], g: GraphContext, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What a symbolic function gives, which may say why it gives nothing."""
    reasons: list[str] = []
    token = _reasons.set(reasons)
    try:
        results = function(*args, **kwargs)
    finally:
        _reasons.reset(token)
    g.finish_blocks()
    if results is None:
        raise Refusal("; ".join(reasons) or "its symbolic function returned None")
    return results


def context_for(call: Call, opset: int) -> GraphContext:
    values = Values(call.b)
    listed = [values.of_argument(a) for a in call.arguments.values()]
    for value, source in zip(listed, call.node.arguments.values(), strict=True):
        if isinstance(source, Value) and requires_grad(source, call.parameters, call.trainable):
            value.setType(replace(value.type(), needs_grad=True))
    parameters = {k: v.constant for k, v in call.parameters.items() if v.constant is not None}
    return GraphContext(
        values, opset, node_of_call(values, call.node, listed), params_dict=parameters
    )


@contextmanager
def errors_located(function: Callable[..., Any], call: Call, opset: int) -> Iterator[None]:
    """A user's function runs inside: `is_in_onnx_export()` is true for it, and its errors name the
    line of the model."""
    token = _opset.set(opset)
    try:
        with _torch_private.in_onnx_export():
            yield
    except Refusal:
        raise
    except Exception as error:
        ours = isinstance(error, SardonyxError)
        message = str(error) if ours else first_line(error)
        name = getattr(function, "__qualname__", type(function).__qualname__)
        node, sizes = call.node, call.b.sizes
        raise SymbolicFunctionError(
            f"the symbolic function {name} of {node.display_name} failed: {message}",
            [
                ("first", node.location.describe()),
                ("inputs", sizes.in_callers_names(node.describe_inputs())),
            ],
        ) from error
    finally:
        _opset.reset(token)


_CAST = ': end it with g.op("Cast", x, to_i=...)'


def bound_results(
    g: GraphContext, call: Call, results: Any, *, advice: str = _CAST
) -> list[Tensor | None]:
    """What the function returned as the results of the node, with PyTorch's types; `advice` is for
    those of other dtypes."""
    if isinstance(call, QuantizedCall):
        results = call.integers(g, results)
    given = list(_flat(results))
    wanted = call.node.outputs
    if len(given) == 1 and len(wanted) != 1 and _is_sequence(given[0]):
        sequence = given[0]
        given = [g.op("SequenceAt", sequence, torch.tensor(i)) for i in range(len(wanted))]
    if len(given) != len(wanted):
        raise SymbolicFunctionError(
            f"its results are {len(given)} in number, and those of the operator {len(wanted)}"
        )
    return [_bound(g, *pair, advice) for pair in zip(given, wanted, strict=True)]


def _flat(results: Any) -> Iterator[Any]:
    if isinstance(results, (list, tuple)):
        for item in results:
            yield from _flat(item)
    elif isinstance(results, SymbolicValue) and results.is_list:
        yield from _flat(results.content)
    else:
        yield results


def _is_sequence(value: Any) -> bool:
    return (
        isinstance(value, SymbolicValue) and value.is_tensor and value.type().kind() == "ListType"
    )


def _bound(g: GraphContext, result: Any, wanted: Value, advice: str) -> Tensor | None:
    if result is None:
        return None
    if isinstance(result, torch.Tensor):
        result = g.builder.const(result)
    value = g.values.of_argument(result)
    if _is_sequence(value) and not wanted.is_sequence:
        raise SymbolicFunctionError(f"it gives a list where {wanted.type} is wanted")
    if value.is_tensor and value.dtype is None and not _is_sequence(value):
        _check_sizes(value.type().shape, wanted)
        tensor = Tensor(value.content, wanted.dtype, wanted.shape, value.const)
        g.builder.declare(tensor)
        return tensor
    tensor = g.as_tensor(value) if not _is_sequence(value) else _sequence(value)
    if tensor.dtype != wanted.dtype:
        raise SymbolicFunctionError(
            f"it gives {_name(tensor.dtype)} where PyTorch gives {_name(wanted.dtype)}{advice}"
        )
    rank = None if tensor.shape is None else len(tensor.shape)
    if rank is not None and rank != wanted.type.rank and not wanted.is_sequence:
        raise SymbolicFunctionError(
            f"it gives a tensor of {rank} dims where PyTorch gives {wanted.type}"
        )
    _check_sizes(tensor.shape, wanted)
    return tensor


def _check_sizes(sizes: Sequence[Dim | None] | None, wanted: Value) -> None:
    if sizes is None or wanted.is_sequence or len(sizes) != wanted.type.rank:
        return
    pairs = zip(sizes, wanted.shape, strict=True)
    if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        given = ", ".join("?" if size is None else str(size) for size in sizes)
        raise SymbolicFunctionError(f"it gives sizes [{given}] where {wanted.type} is wanted")


def _sequence(value: SymbolicValue) -> Tensor:
    element = value.type().getElementType()
    if element.tensor_dtype is None:
        raise SymbolicFunctionError(f"the dtype of {value!r} is not known: call setType() on it")
    return Tensor(value.content, element.tensor_dtype, element.shape, is_sequence=True)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
