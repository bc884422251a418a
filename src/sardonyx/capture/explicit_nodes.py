"""Nodes that a model names explicitly (`ops.symbolic`): eager PyTorch gives zeros for them, so that
outputs computed from them cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.aten.control_flow import all_nodes
from sardonyx.aten.graph import AtenGraph, Node, Value, values_in

_OPERATORS = frozenset(
    ("onnx_symbolic::_symbolic", "onnx_symbolic::_symbolic_multi_out", "sardonyx::symbolic")
)
"""Behind `symbolic` and `symbolic_multi_out`, PyTorch's and ours."""


def outputs_of_explicit_nodes(graph: AtenGraph, names: Sequence[str]) -> dict[str, str]:
    """The outputs, of these names, that are computed from such nodes; and which nodes those are."""
    sources: dict[Value, dict[str, None]] = {}
    for node in graph.nodes:
        found: dict[str, None] = {}
        for inner in all_nodes([node]):
            if inner.op._schema.name in _OPERATORS:
                found[_description(inner)] = None
            for value in inner.inputs():
                found |= sources.get(value, {})
        if found:
            sources.update(dict.fromkeys(node.outputs, found))
    outputs = [*graph.outputs, *(mutation.final for mutation in graph.mutated)]
    return {
        name: ", ".join(sources[value])
        for name, output in zip(names, outputs, strict=True)
        for value in values_in([output])
        if value in sources
    }


def _description(node: Node) -> str:
    domain, name = node.arguments["domain"], node.arguments["op_type"]
    place = node.location.describe()
    return f"{domain}::{name} ({place})" if domain else f"{name} ({place})"
