"""Writes made pure."""

from __future__ import annotations

from sardonyx.capture.graph import Argument, AtenGraph, Node
from sardonyx.capture.infer import TypeInference


def functionalize(graph: AtenGraph) -> None:
    pass


def functionalize_nodes(
    graph: AtenGraph, nodes: list[Node], outputs: list[Argument], inference: TypeInference
) -> tuple[list[Node], list[Argument]]:
    return nodes, outputs
