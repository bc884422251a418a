"""The graphs of a model: those that ONNX nodes carry, branches and bodies of loops, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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


def roots_of(model: ir.Model) -> list[ir.Graph]:
    """The main graph and the functions' bodies."""
    return [model.graph, *(function.graph for function in model.functions.values())]


def graphs_of(model: ir.Model) -> Iterator[ir.Graph]:
    """The main graph, the functions' bodies and every graph nested in them, outer before inner."""
    pending = roots_of(model)
    while pending:
        graph = pending.pop()
        yield graph
        pending.extend(body for node in graph for body in subgraphs_of(node))


def with_bodies(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """The nodes, each followed by those of its bodies."""
    for node in nodes:
        yield node
        for body in subgraphs_of(node):
            yield from with_bodies(body)


def all_nodes(model: ir.Model) -> Iterator[ir.Node]:
    """Those of bodies and functions too."""
    for root in roots_of(model):
        yield from with_bodies(root)
