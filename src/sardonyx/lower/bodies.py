"""The graphs that ONNX nodes carry: branches, and the bodies of loops."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

_WITH_BODIES = frozenset({"If", "Loop", "Scan", "SequenceMap"})


def subgraphs_of(node: ir.Node) -> Sequence[ir.Graph]:
    """The bodies a control-flow node carries."""
    if node.domain == "" and node.op_type not in _WITH_BODIES:
        return ()
    bodies: list[ir.Graph] = []
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref():
            bodies.append(attribute.as_graph())
        elif attribute.type == ir.AttributeType.GRAPHS and not attribute.is_ref():
            bodies.extend(attribute.as_graphs())
    return bodies
