"""Nodes with blocks: branch and loop, to which every capture reduces control flow.

A block reads the values around it directly; only what a loop carries is an input of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from sardonyx.aten.graph import Node, Value, values_in

_OPERATORS = torch.library.Library("sardonyx", "DEF")  # type: ignore[no-untyped-call]


def define_operator(schema: str) -> Any:
    """An operator of ours, which only graphs have: it has no kernel."""
    name = _OPERATORS.define(schema)  # type: ignore[no-untyped-call]
    return getattr(torch.ops.sardonyx, name).default


BRANCH = define_operator("branch(Tensor condition) -> Tensor[]")
"""Two blocks without inputs: for a true and for a false condition."""
LOOP = define_operator("loop(Scalar? count, Tensor? condition, Tensor[] carried) -> Tensor[]")
"""One block. Its inputs: the iteration number, then the carried values. Its outputs: whether to
continue (None: up to the count), the carried values, and values to stack over the iterations. The
outputs of the node: the last carried values, then the stacked ones."""


def all_nodes(nodes: list[Node]) -> Iterator[Node]:
    """The nodes, and those inside their blocks."""
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
    """Applies `change` to the nodes and to those of every block, innermost first."""
    for node in nodes:
        for block in node.blocks:
            block.nodes = map_blocks(block.nodes, change)
    return change(nodes)
