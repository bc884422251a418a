"""Types that hold every value of another: what to compute in where an operator lacks a type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter, is_omitted
from sardonyx.lower.onnx_types.legality import (
    all_parameters_given,
    signature_of,
    type_string,
    type_string_of,
)
from sardonyx.lower.onnx_types.schemas import Formal, OpSchema
from sardonyx.lower.onnx_types.subgraphs import subgraphs_of

D: TypeAlias = ir.DataType

TYPE_ATTRIBUTES = ("dtype", "output_datatype", "output_dtype")
"""Attributes that say the type of an output which no input has."""

# Each holds all values of the narrower type; results are cast back, and integers wrap as in
# PyTorch.
_WIDER: Mapping[D, Sequence[D]] = {
    D.BOOL: (D.UINT8, D.INT8, D.INT32, D.INT64, D.FLOAT),
    D.UINT8: (D.UINT16, D.INT16, D.UINT32, D.INT32, D.INT64, D.UINT64),
    D.UINT16: (D.UINT32, D.INT32, D.INT64, D.UINT64),
    D.UINT32: (D.UINT64, D.INT64),
    D.INT8: (D.INT16, D.INT32, D.INT64),
    D.INT16: (D.INT32, D.INT64),
    D.INT32: (D.INT64,),
    D.FLOAT16: (D.FLOAT, D.DOUBLE),
    D.BFLOAT16: (D.FLOAT, D.DOUBLE),
    D.FLOAT: (D.DOUBLE,),
}
# Exact too where an operator only picks, compares or moves what it is given.
_HOLDING: Mapping[D, Sequence[D]] = {
    D.UINT8: (D.FLOAT, D.DOUBLE),
    D.INT8: (D.FLOAT, D.DOUBLE),
    D.UINT16: (D.FLOAT, D.DOUBLE),
    D.INT16: (D.FLOAT, D.DOUBLE),
    D.UINT32: (D.DOUBLE,),
    D.INT32: (D.DOUBLE,),
}

_PICKING = frozenset({
    "ArgMax", "ArgMin", "Clip", "DepthToSpace", "GlobalMaxPool", "Greater", "Hardmax", "Less",
    "Max", "MaxPool", "MaxUnpool", "Min", "NonZero", "Pad", "ReduceMax", "ReduceMin", "Relu",
    "SpaceToDepth", "TopK", "Trilu", "Unique", "Where",
})  # fmt: skip
# Their integer types are what they are about.
_QUANTIZING = frozenset({
    "ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv",
    "QLinearMatMul", "QuantizeLinear",
})  # fmt: skip


def wider_types(op_type: str, dtype: ir.DataType) -> Sequence[ir.DataType]:
    """Types to compute `op_type` in instead of `dtype` with the same results, nearest first."""
    if op_type in _QUANTIZING and dtype.is_integer():
        return ()
    holding = _HOLDING.get(dtype, ()) if op_type in _PICKING else ()
    return (*_WIDER.get(dtype, ()), *holding)


def in_wider_types(b: Emitter, node: ir.Node, signature: OpSchema) -> Sequence[ir.Value] | None:
    """The node with casts around it if a narrow type is all that `signature` has against it."""
    changes = dict(_stand_ins(node, signature, b.opset))
    if not changes or subgraphs_of(node):
        return None
    return cast_around(b, node, signature, changes)


def cast_around(
    b: Emitter, node: ir.Node, signature: OpSchema, changes: Mapping[str, ir.DataType]
) -> Sequence[ir.Value]:
    """The node with other types for some of its type variables, between casts to and from them."""
    inputs = [
        None if value is None else b.cast(value, changes.get(_variable(signature.inputs, index)))
        for index, value in enumerate(node.inputs)
    ]
    from_inputs = {parameter.type_name for parameter in signature.inputs}
    asked = [int(dtype) for name, dtype in changes.items() if name not in from_inputs]
    attributes = {name: asked[0] for name in TYPE_ATTRIBUTES if asked and name in node.attributes}
    results = []
    for index, (old, new) in enumerate(
        zip(node.outputs, b.again(inputs, **attributes), strict=True)
    ):
        if _variable(signature.outputs, index) in changes and not is_omitted(old):
            new.shape = new.shape if old.shape is None else old.shape
            new = b.cast(new, old.dtype)
        results.append(new)
    return results


def _variable(parameters: Sequence[Formal], index: int) -> str:
    return parameters[min(index, len(parameters) - 1)].type_name


def _stand_ins(node: ir.Node, signature: OpSchema, opset: int) -> Iterator[tuple[str, ir.DataType]]:
    """The type variables that are bound to a type which they may not be, and another for each."""
    cast = signature_of("Cast", opset)
    castable = cast.inputs[0].types if cast is not None and node.op_type != "Cast" else ()
    for value, parameter in all_parameters_given(node, signature):
        spelled = type_string(value)
        if value.dtype is None or spelled in parameter.types or spelled not in castable:
            continue
        for wider in wider_types(node.op_type, value.dtype):
            if type_string_of(wider) in parameter.types:
                yield parameter.type_name, wider
                break
