"""PyTorch's own decomposition of one node, on demand, in place of the node."""

from __future__ import annotations

import torch

from sardonyx.capture.expansion import expansion
from sardonyx.capture.functionalize import functionalize_nodes
from sardonyx.capture.graph import Argument, AtenGraph, Node
from sardonyx.capture.infer import TypeInference


def decompose(graph: AtenGraph, node: Node, inference: TypeInference) -> list[Node] | None:
    """Nodes that compute `node`'s outputs from its inputs; None where PyTorch has no expansion."""
    try:
        parts = expansion(graph, node, inference, inference.fake_of)
    except Exception:  # an expansion that does not fit these arguments is no expansion
        return None
    if parts is None:
        return None
    expanded, outputs = functionalize_nodes(graph, parts[0], list(parts[1]), inference)
    return _with_outputs(expanded, outputs, node)


def _with_outputs(expanded: list[Node], outputs: list[Argument], node: Node) -> list[Node] | None:
    """The expansion giving the very values that the rest of the graph knows."""
    for wanted, made in zip(node.outputs, outputs, strict=True):
        expanded.append(
            Node(
                torch.ops.aten.alias.default,
                {"self": made},
                [wanted],
                node.location,
            )
        )
    return expanded
