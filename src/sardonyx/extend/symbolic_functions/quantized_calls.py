"""Functions of users for operators on quantized tensors: what those get, and what they give.

A quantized tensor is the tuple (integers, scale, zero point), with the axis behind it where it is
quantized per channel; `symbolic_helper.dequantize_helper` and its kin take and make it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from sardonyx.aten.graph import Node, Value, operator_name
from sardonyx.capture.quantized.opaque_calls import KeptCall, KeptCalls, QuantizedArgument
from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.values import SymbolicValue
from sardonyx.lower.custom_lowerings import Call, CustomForm


@dataclass(frozen=True, slots=True)
class QuantizedCall(Call):
    """A call whose arguments, and its result, may be quantized tensors."""

    grid: QuantizedArgument | None = None
    """The scale and zero point of the result; None where it is a real number."""

    def integers(self, g: GraphContext, results: Any) -> Any:
        """What a function gave, as what the graph holds of it: integers by PyTorch's scale."""
        if self.grid is None:
            return results
        wanted = self.grid.mapped(lambda part: part if part is None else g.values.of_argument(part))
        given = _parts(results)
        if isinstance(given, SymbolicValue):
            if given.dtype is None:
                raise SymbolicFunctionError(
                    "whether it gives integers or real numbers is not known: call setType() on"
                    " its result"
                )
            return _quantized(g, given, wanted) if given.dtype.is_floating_point else given
        if given.dtype == wanted.dtype and _on_one_grid(given, wanted):
            return given.integers
        parts = given.integers, given.scale, given.zero_point
        return _quantized(g, g.op("DequantizeLinear", *parts, axis_i=given.axis), wanted)


def quantized_forms(
    kept: KeptCalls, form_of: Callable[[str], CustomForm | None]
) -> dict[str, CustomForm]:
    """What writes the calls that a capture kept, by the names of their operators in the graph;
    `form_of` has the caller's form of an operator."""
    forms = {}
    for call in kept:
        form = form_of(operator_name(call.op))
        if form is not None:
            forms[call.kept_op._schema.name] = _of_parts(form, call)
    return forms


def _of_parts(form: CustomForm, kept: KeptCall) -> CustomForm:
    def of_parts(call: Call) -> Any:
        outputs = [Value(v.name, v.type) for v in call.node.outputs]
        node = Node(kept.op, kept.arguments(call.node.arguments), outputs, call.node.location)
        given, grid = kept.arguments(call.arguments), kept.grid(call.arguments)
        return form(QuantizedCall(call.b, node, given, call.parameters, call.trainable, grid))

    return of_parts


def _parts(results: Any) -> SymbolicValue | QuantizedArgument:
    """A tuple that a function gave, or the one value."""
    items = results.content if isinstance(results, SymbolicValue) and results.is_list else results
    if isinstance(items, (list, tuple)) and len(items) == 1:
        return _parts(items[0])
    if isinstance(items, (list, tuple)) and len(items) in (3, 4):
        integers, scale, zero_point, *axis = items
        if integers.dtype is None:
            raise SymbolicFunctionError("the dtype of its integers is not known: call setType()")
        _check_fits(zero_point, integers.dtype)
        place = axis[0] if axis else None
        held = place.content if isinstance(place, SymbolicValue) else place
        return QuantizedArgument(integers, scale, zero_point, integers.dtype, held)
    if isinstance(items, SymbolicValue):
        return items
    raise SymbolicFunctionError(
        "the operator gives a quantized tensor: give (integers, scale, zero_point), as"
        " symbolic_helper.quantize_helper(g, x, scale, zero_point) makes it"
    )


def _check_fits(zero_point: Any, dtype: torch.dtype) -> None:
    held = _held(zero_point)
    if held is None or dtype.is_floating_point:
        return
    numbers, of = torch.as_tensor(held), torch.iinfo(dtype)
    if bool(((numbers < of.min) | (numbers > of.max)).any()):
        name = str(dtype).removeprefix("torch.")
        raise SymbolicFunctionError(f"the zero point {numbers.tolist()} is no number of {name}")


def _held(part: Any) -> Any:
    """What is known of a part."""
    if not isinstance(part, SymbolicValue):
        return part
    return part.content if part.is_python else part.const


def _on_one_grid(one: QuantizedArgument, other: QuantizedArgument) -> bool:
    return (
        one.axis == other.axis
        and _are_equal(one.scale, other.scale)
        and _are_equal(one.zero_point, other.zero_point)
    )


def _are_equal(one: Any, other: SymbolicValue) -> bool:
    if isinstance(one, SymbolicValue) and one.is_tensor and one.content is other.content:
        return True
    held = _held(one)
    if held is None or other.const is None:
        return False
    # Zero points by their numbers: another dtype may hold more of them.
    is_scale = other.const.dtype.is_floating_point
    dtype = other.const.dtype if is_scale else torch.float64
    return torch.equal(torch.as_tensor(held).to(dtype), other.const.to(dtype))


def _quantized(g: GraphContext, x: SymbolicValue, wanted: QuantizedArgument) -> SymbolicValue:
    return g.op("QuantizeLinear", x, wanted.scale, wanted.zero_point, axis_i=wanted.axis)


def flattened(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call with the parts of quantized ones apart, for functions that have no
    tuples: `qx`, `qx_scale`, `qx_zero_point`; the axes of those that have one come last."""
    flat: dict[str, Any] = {}
    axes: dict[str, int] = {}
    for name, argument in arguments.items():
        if isinstance(argument, QuantizedArgument):
            flat[name] = argument.integers
            flat[f"{name}_scale"] = argument.scale
            flat[f"{name}_zero_point"] = argument.zero_point
            if argument.axis is not None:
                axes[f"{name}_axis"] = argument.axis
        else:
            flat[name] = argument
    return flat | axes
