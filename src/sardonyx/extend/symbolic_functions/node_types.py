"""What a node that a symbolic function writes gives: dtypes and shapes, by onnx's own inference."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx.shape_inference
import onnx_ir as ir
import torch

from sardonyx.aten.graph import Dim
from sardonyx.extend.symbolic_functions.graph_values import UNKNOWN
from sardonyx.extend.symbolic_functions.values import SymbolicValue, ValueType
from sardonyx.lower.onnx_types.schemas import OpSchema
from sardonyx.lower.onnx_types.shapes import dims_of_type, inferred_types, shape_data, tensor_type
from sardonyx.lower.values import ONNX_TO_TORCH


def result_types(
    schema: OpSchema, node: ir.Node, inputs: Sequence[SymbolicValue | None], opset: int
) -> list[ValueType]:
    """The types of the node's results as far as they are known."""
    found = _inferred(schema, node, inputs, opset)
    by_rule = _dtypes_by_schema(schema, inputs, len(node.outputs))
    return [
        ValueType.of_tensor(dtype, type_.shape)
        if type_.tensor_dtype is None and type_.kind() == "TensorType"
        else type_
        for type_, dtype in zip(found, by_rule, strict=True)
    ]


def _dtypes_by_schema(
    schema: OpSchema, inputs: Sequence[SymbolicValue | None], count: int
) -> list[torch.dtype | None]:
    bound: dict[str, torch.dtype] = {}
    for position, value in enumerate(inputs):
        if value is not None and value.dtype is not None:
            bound.setdefault(schema.input_formal(position).type_name, value.dtype)
    dtypes: list[torch.dtype | None] = []
    for position in range(count):
        formal = schema.output_formal(position)
        only = next(iter(formal.dtypes)) if len(formal.dtypes) == 1 else None
        dtypes.append(bound.get(formal.type_name, only))
    return dtypes


def _inferred(
    schema: OpSchema, node: ir.Node, inputs: Sequence[SymbolicValue | None], opset: int
) -> list[ValueType]:
    dims: dict[str, Dim] = {}
    types = [None if v is None else _type_proto(v.type(), dims) for v in inputs]
    if any(t is None and v is not None for v, t in zip(inputs, types, strict=True)):
        return [UNKNOWN] * len(node.outputs)
    data = [None if v is None else shape_data(v.const) for v in inputs]
    found = inferred_types(schema, node, types, data, opset) or [None] * len(node.outputs)
    return [_value_type(type_, dims) for type_ in found]


def function_result_types(
    node: ir.Node,
    inputs: Sequence[SymbolicValue | None],
    functions: Sequence[ir.Function],
) -> list[ValueType]:
    """What a call of the first of the functions gives, which may call the others."""
    unknown = [UNKNOWN] * len(node.outputs)
    dims: dict[str, Dim] = {}
    versions: dict[str, int] = {node.domain: 1}
    for function in functions:
        for domain, version in function.opset_imports.items():
            versions[domain] = max(version, versions.get(domain, 1))
    call = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    call.attribute.extend(ir.serde.serialize_attribute(a) for a in node.attributes.values())
    call.output.extend(f"o{place}" for place in range(len(unknown)))
    graph = onnx.GraphProto(name="call")
    for position, value in enumerate(inputs):
        call.input.append("" if value is None else f"i{position}")
        type_ = None if value is None else _type_proto(value.type(), dims)
        if type_ is not None:
            graph.input.append(onnx.ValueInfoProto(name=f"i{position}", type=type_))
        elif value is not None:
            return unknown
    graph.node.append(call)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in call.output)
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid(d, v) for d, v in versions.items()],
        functions=[ir.serde.serialize_function(function) for function in functions],
    )
    try:
        found = onnx.shape_inference.infer_shapes(model).graph.output
    except onnx.shape_inference.InferenceError:
        return unknown
    return [_value_type(value.type, dims) for value in found]


def _type_proto(type_: ValueType, dims: dict[str, Dim]) -> onnx.TypeProto | None:
    if type_.kind() == "ListType":
        inner = _type_proto(type_.getElementType(), dims)
        return None if inner is None else onnx.helper.make_sequence_type_proto(inner)
    if type_.tensor_dtype is None:
        return None
    return tensor_type(type_.tensor_dtype, type_.shape, dims)


def _value_type(proto: onnx.TypeProto | None, dims: dict[str, Dim]) -> ValueType:
    if proto is None:
        return UNKNOWN
    if proto.HasField("sequence_type"):
        return ValueType("ListType", element=_value_type(proto.sequence_type.elem_type, dims))
    dtype = ONNX_TO_TORCH.get(ir.DataType(proto.tensor_type.elem_type))
    return ValueType.of_tensor(dtype, dims_of_type(proto, dims))
