"""ONNX's own definition of an operator: the function that its schema has, in place of the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import onnx
import onnx.inliner
import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter, infer_output_types, is_omitted
from sardonyx.lower.onnx_types.legality import schema_of
from sardonyx.lower.onnx_types.subgraphs import subgraphs_of

_DOMAIN = "sardonyx.expanded"


def expanded(b: Emitter, node: ir.Node) -> Sequence[ir.Value] | None:
    """The outputs of the nodes that define `node`, which is one of opset `b.opset`; None where that
    depends on attributes or types that are not known."""
    schema = schema_of(node.op_type, b.opset)
    if schema is None or any(attribute.is_ref() for attribute in node.attributes.values()):
        return None
    given = {value.name: value for value in node.inputs if value is not None}
    call = ir.serde.serialize_node(node)
    stated = {attribute.name for attribute in call.attribute}
    defaults = {name: a.default_value for name, a in schema.attributes.items()}
    call.attribute.extend(d for n, d in defaults.items() if n not in stated and d.name)
    types = [
        onnx.TypeProto() if value is None else ir.serde.serialize_value(value).type
        for value in node.inputs
    ]
    body = schema.function_body
    if not body.node:  # it depends on the attributes and the types of the inputs
        encoded = [each.SerializeToString() for each in types]
        known: Any = schema  # its annotations lack the method
        found = known.get_context_dependent_function(call.SerializeToString(), encoded)
        body = onnx.FunctionProto.FromString(found)
        if not body.node:
            return None
    call.domain = body.domain = _DOMAIN
    graph = onnx.helper.make_graph(
        [call],
        node.op_type,
        [onnx.ValueInfoProto(name=name) for name in given],
        [onnx.ValueInfoProto(name=value.name) for value in node.outputs if not is_omitted(value)],
    )
    imports = [onnx.helper.make_opsetid("", b.opset), onnx.helper.make_opsetid(_DOMAIN, 1)]
    del body.opset_import[:]  # it may be written for an earlier opset
    body.opset_import.append(imports[0])
    model = onnx.helper.make_model(graph, opset_imports=imports, functions=[body])
    inlined = ir.serde.deserialize_graph(onnx.inliner.inline_local_functions(model).graph)
    for value in inlined.inputs:
        value.replace_all_uses_with(given[value.name])
    outputs = {value.name: value for value in inlined.outputs}
    results = [outputs.get(value.name, value) for value in node.outputs]
    nodes = list(inlined)
    inlined.outputs.clear()
    inlined.remove(nodes)
    _infer_types(nodes, b.opset)
    b.adopt(nodes)
    return results


def _infer_types(nodes: Iterable[ir.Node], opset: int) -> None:
    for node in nodes:
        for body in subgraphs_of(node):
            if node.op_type == "Scan":
                _give_types_to_body(node, body)
            _infer_types(body, opset)
        infer_output_types(node, opset)


def _give_types_to_body(scan: ir.Node, body: ir.Graph) -> None:
    """The states of a Scan go in as they are, the rest without its first axis."""
    carried = len(scan.inputs) - scan.attributes["num_scan_inputs"].as_int()
    for place, (inner, outer) in enumerate(zip(body.inputs, scan.inputs, strict=True)):
        assert outer is not None
        inner.type = outer.type
        if outer.shape is not None:
            inner.shape = ir.Shape(list(outer.shape)[place >= carried :])
