"""Branches that give tensors of other shapes, where shape inference takes them for one shape."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter, required_input
from sardonyx.lower.onnx_types.subgraphs import subgraphs_of


def with_open_shapes(b: Emitter, node: ir.Node) -> None:
    """Before opset 11 the shapes that both branches of an If are seen to give are merged, and a
    model in which they differ is not loaded. A tensor is then reshaped to its own shape, in a way
    that no inference sees through."""
    branches = subgraphs_of(node)
    for place in range(len(node.outputs)):
        outputs = [graph.outputs[place] for graph in branches]
        if _may_differ(*(output.shape for output in outputs)):
            for graph in branches:
                _open_shape(b, graph, place, required_input(node, 0))


def _may_differ(then: ir.Shape | None, otherwise: ir.Shape | None) -> bool:
    if then is None and otherwise is None:
        return False
    if then is None or otherwise is None or len(then) != len(otherwise):
        return True
    pairs = zip(then, otherwise, strict=True)
    return any(one != other for one, other in pairs if int in (type(one), type(other)))


def _open_shape(b: Emitter, graph: ir.Graph, place: int, condition: ir.Value) -> None:
    output = graph.outputs[place]
    if output.shape is None:
        return
    first = len(b.nodes)
    always = b.Reshape(b.Or(condition, b.Not(condition)), b.ints(1))
    kept = b.Expand(always, b.ints(len(output.shape)))
    opened = b.Reshape(output, b.Compress(b.Shape(output), kept, axis=0))
    opened.type, opened.shape = output.type, None
    graph.extend(b.nodes[first:])
    del b.nodes[first:]
    graph.outputs[place] = opened
