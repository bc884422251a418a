"""The inputs and outputs of TorchScript nodes.

The iterators that PyTorch has for both cost as much as reading the node.
"""

from __future__ import annotations

from typing import Any


def inputs(node: Any) -> list[Any]:
    return [node.inputsAt(index) for index in range(node.inputsSize())]


def outputs(node: Any) -> list[Any]:
    return [node.outputsAt(index) for index in range(node.outputsSize())]


def unpacked_into(node: Any) -> int | None:
    """The number of variables, if all that uses the result is one that unpacks it."""
    uses = node.output().uses() if node.outputsSize() == 1 else []
    if len(uses) != 1 or uses[0].user.kind() != "prim::ListUnpack":
        return None
    return int(uses[0].user.outputsSize())


def names_read(node: Any) -> set[str]:
    """The values that a node and its blocks take from outside."""
    names = {i.debugName() for i in inputs(node)}
    for block in node.blocks():
        made = {i.debugName() for i in block.inputs()}
        for inner in block.nodes():
            names |= names_read(inner) - made
            made |= {o.debugName() for o in outputs(inner)}
        names |= {o.debugName() for o in block.outputs()} - made
    return names
