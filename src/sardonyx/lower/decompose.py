"""PyTorch's own decomposition of one node, on demand, in place of the node."""

from __future__ import annotations

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.decomposition import expansion
from sardonyx.aten.graph import Argument, AtenGraph, Node
from sardonyx.aten.size_printing import in_callers_names
from sardonyx.aten.type_inference import TypeInference
from sardonyx.errors import first_line
from sardonyx.functionalization.functionalize import functionalize_nodes


class NoDecomposition(Exception):
    """PyTorch cannot take this call apart; the text says why."""


def decompose(graph: AtenGraph, node: Node, inference: TypeInference) -> list[Node]:
    """Nodes that compute `node`'s outputs from its inputs."""
    guards_before = _torch_private.guard_count(inference.mode)
    try:
        parts = expansion(graph, node, inference, inference.fake_of)
    except Exception as error:  # whatever PyTorch's own code raises for arguments it cannot take
        raise NoDecomposition(f"its decomposition fails: {first_line(error)}") from error
    if parts is None:
        raise NoDecomposition("it has no decomposition")
    for guard in _torch_private.guards(inference.mode, guards_before):
        if isinstance(guard.expression, sympy.Eq) and any(
            side.is_Integer for side in guard.expression.args
        ):
            condition = in_callers_names(str(guard.expression), graph.symbol_names)
            raise NoDecomposition(f"its decomposition holds where {condition} alone")
    expanded, outputs = functionalize_nodes(graph, parts[0], list(parts[1]), inference)
    return _with_outputs(expanded, outputs, node)


def _with_outputs(expanded: list[Node], outputs: list[Argument], node: Node) -> list[Node]:
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
