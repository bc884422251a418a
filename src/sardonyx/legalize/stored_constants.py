"""Constants that an opset has no Constant for are stored beside the weights."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.emitter import UniqueNames
from sardonyx.lower.onnx_types.legality import is_standard, signature_of, type_string_of


def store_constants(model: ir.Model) -> None:
    """Below opset 9, a Constant is a float. Others become initializers of the graph they are in."""
    signature = signature_of("Constant", model.opset_imports[""])
    if signature is None or type_string_of(ir.DataType.INT64) in signature.outputs[0].types:
        return
    allowed = signature.outputs[0].types
    names = UniqueNames.beside(model)
    for node in tuple(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type != "Constant" or not is_standard(node) or "value" not in node.attributes:
            continue
        attribute, old, graph = node.attributes["value"], node.outputs[0], node.graph
        if attribute.is_ref() or old.is_graph_output() or not isinstance(graph, ir.Graph):
            continue
        tensor = attribute.as_tensor()
        if type_string_of(tensor.dtype) in allowed:
            continue
        name, old.name = old.name or names.derived_from("constant"), None
        stored = ir.Value(
            name=name,
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape(tensor.shape.numpy()),
            const_value=tensor,
        )
        old.replace_all_uses_with(stored)
        graph.register_initializer(stored)
        graph.remove(node, safe=True)
