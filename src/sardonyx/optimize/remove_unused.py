"""Remove nodes, trailing optional outputs, initializers and functions nothing uses."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedFunctionsPass

from sardonyx.lower.onnx_types.legality import schema_of
from sardonyx.lower.onnx_types.subgraphs import graphs_of, roots_of, subgraphs_of
from sardonyx.optimize.rewrite import remove_node


class RemoveUnused(ir.passes.InPlacePass):
    """Graph inputs and outputs stay.

    onnx_ir's own pass would leave the initializers of subgraphs, and everything that only a
    removed control-flow node's bodies were using.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        modified = False
        for root in roots_of(model):
            opset = root.opset_imports.get("", model.opset_imports.get(""))
            modified |= _remove_unused_nodes(root, opset)
        for graph in graphs_of(model):
            modified |= _remove_unused_initializers(graph)
        if model.functions:
            remove_functions = RemoveUnusedFunctionsPass()  # type: ignore[no-untyped-call]
            modified |= remove_functions(model).modified
        return ir.passes.PassResult(model, modified=modified)


def _is_unused(value: ir.Value) -> bool:
    return not value.is_graph_output() and not value.uses()


def _remove_unused_nodes(graph: ir.Graph, opset: int | None) -> bool:
    modified = False
    for node in reversed(graph):
        outputs = node.outputs
        if outputs and all(_is_unused(output) for output in outputs):
            remove_node(node)
            modified = True
            continue
        if len(outputs) > 1 and opset is not None:
            modified |= _remove_unused_trailing_outputs(node, opset)
        for body in subgraphs_of(node):
            modified |= _remove_unused_nodes(body, opset)
    return modified


def _remove_unused_trailing_outputs(node: ir.Node, opset: int) -> bool:
    # Before opset 14 the number of outputs decides whether a BatchNormalization trains.
    schema = schema_of(node.op_type, opset) if node.domain == "" else None
    if schema is None or node.op_type == "BatchNormalization":
        return False
    formal = schema.outputs
    count = len(node.outputs)
    while (
        0 < count <= len(formal)
        and formal[count - 1].option == onnx.defs.OpSchema.FormalParameterOption.Optional
        and _is_unused(node.outputs[count - 1])
    ):
        count -= 1
    if count == len(node.outputs) or count == 0:
        return False
    node.resize_outputs(count)
    return True


def _remove_unused_initializers(graph: ir.Graph) -> bool:
    unused = [
        name
        for name, value in graph.initializers.items()
        if _is_unused(value) and not value.is_graph_input()
    ]
    for name in unused:
        del graph.initializers[name]
    return bool(unused)
