"""Ranks that a model does not state: old forms of operators name every axis."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.emitter import (
    infer_output_types,
    input_of,
    is_omitted,
    rank_of,
    static_dim,
)
from sardonyx.lower.onnx_types.legality import is_standard
from sardonyx.lower.onnx_types.subgraphs import subgraphs_of


def complete_ranks(graph: ir.Graph, opset: int) -> None:
    """Infer the shapes of values that have none, of nodes of `opset`."""
    for node in graph:
        for subgraph in subgraphs_of(node):
            complete_ranks(subgraph, opset)
        lacking = [v for v in node.outputs if v.shape is None and not is_omitted(v)]
        if not lacking or not is_standard(node):
            continue
        types = [value.type for value in node.outputs]
        infer_output_types(node, opset)
        for value, type_ in zip(node.outputs, types, strict=True):
            value.type = type_ or value.type
        rank = _rank_of_target(node)
        if node.outputs[0].shape is None and rank is not None:
            node.outputs[0].shape = ir.Shape([None] * rank)


def _rank_of_target(node: ir.Node) -> int | None:
    """The rank of a result whose shape is an input."""
    source, target = input_of(node, 0), input_of(node, 1)
    if source is None:
        return None
    if node.op_type == "ConstantOfShape":
        return static_dim(source, 0)
    if node.op_type not in ("Expand", "Reshape") or target is None:
        return None
    length, rank = static_dim(target, 0), rank_of(source)
    if node.op_type == "Reshape" or length is None:
        return length
    return None if rank is None else max(length, rank)
