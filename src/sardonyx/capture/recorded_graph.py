"""A recorded graph to look at."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.capture.graph import AtenGraph


@dataclass(frozen=True)
class RecordedGraph:
    """The model as it was recorded; prints as its calls, one a line."""

    graph: AtenGraph

    def __str__(self) -> str:
        inputs = ", ".join(map(repr, self.graph.inputs))
        lines = [f"  {node!r}  # {node.location.describe()}" for node in self.graph.nodes]
        outputs = ", ".join(map(repr, self.graph.outputs))
        return "\n".join([f"graph({inputs}):", *lines, f"  return ({outputs})"])
