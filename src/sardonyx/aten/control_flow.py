"""Nodes with blocks: a branch and a loop, the two forms that every capture's control flow takes.

A block reads the values of the graph around it as they are; only what changes from iteration to
iteration is an input of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from sardonyx.aten.graph import Node, Value, values_in

_SCHEMAS = (
    "branch(Tensor condition) -> Tensor[]",
    "loop(Scalar? count, Tensor? condition, Tensor[] carried) -> Tensor[]",
)
_OPERATORS = torch.library.Library("sardonyx", "DEF")  # type: ignore[no-untyped-call]
for _schema in _SCHEMAS:
    _OPERATORS.define(_schema)  # type: ignore[no-untyped-call]

BRANCH = torch.ops.sardonyx.branch.default
"""Blocks: what is computed where the condition holds, and where it does not. No inputs."""
LOOP = torch.ops.sardonyx.loop.default
"""One block. Its inputs: the number of the iteration, then what is carried. Its outputs: whether to
go on (None: as long as the count says), what is carried on, and what is stacked over the
iterations. The results of the node: what is carried last, then what was stacked."""


def all_nodes(nodes: list[Node]) -> Iterator[Node]:
    """Those inside blocks, too."""
    for node in nodes:
        yield node
        for block in node.blocks:
            yield from all_nodes(block.nodes)


def values_read(node: Node) -> Iterator[Value]:
    """Its inputs, and what its blocks read and return."""
    yield from node.inputs()
    for block in node.blocks:
        for inner in block.nodes:
            yield from values_read(inner)
        for output in block.outputs:
            yield from values_in(output)


def map_blocks(nodes: list[Node], change: Callable[[list[Node]], list[Node]]) -> list[Node]:
    """The nodes, changed; and those of every block inside, from the innermost out."""
    for node in nodes:
        for block in node.blocks:
            block.nodes = map_blocks(block.nodes, change)
    return change(nodes)
