"""Operators that took float16 or bfloat16 only later: run them in float32, cast around them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.emitter import HALF_DTYPES, Emitter, is_omitted, subgraphs_of
from sardonyx.legalize.legality import Parameter, Signature, parameters_given, type_string

_FLOAT = "tensor(float)"


def widen_to_float32(b: Emitter, node: ir.Node, signature: Signature) -> Sequence[ir.Value] | None:
    """The node in float32 if half precision is all that `signature` has against its types."""
    variables = _half_type_variables(node, signature)
    if not variables or next(subgraphs_of(node), None) is not None:
        return None
    inputs = [
        value
        if value is None or _parameter(signature.inputs, index).type_variable not in variables
        else b.cast(value, ir.DataType.FLOAT)
        for index, value in enumerate(node.inputs)
    ]
    changes: dict[str, int] = {}
    asked = node.attributes.get_int("dtype", int(ir.DataType.UNDEFINED))
    if asked in [int(dtype) for dtype in HALF_DTYPES]:
        changes["dtype"] = int(ir.DataType.FLOAT)
    outputs = b.again(inputs, **changes)
    return [
        b.cast(new, old.dtype)
        if _parameter(signature.outputs, index).type_variable in variables and not is_omitted(old)
        else new
        for index, (old, new) in enumerate(zip(node.outputs, outputs, strict=True))
    ]


def _parameter(parameters: Sequence[Parameter], index: int) -> Parameter:
    return parameters[min(index, len(parameters) - 1)]


def _half_type_variables(node: ir.Node, signature: Signature) -> set[str]:
    """The type variables that are bound to a half type which they may not be."""
    variables = set()
    for values, parameters in (
        (node.inputs, signature.inputs),
        (node.outputs, signature.outputs),
    ):
        for value, parameter in parameters_given(values, parameters):
            if (
                value.dtype in HALF_DTYPES
                and type_string(value) not in parameter.types
                and _FLOAT in parameter.types
            ):
                variables.add(parameter.type_variable)
    return variables
