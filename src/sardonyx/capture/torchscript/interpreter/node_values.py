"""What a TorchScript node takes and gives, and what is inside of its blocks.

The iterators that PyTorch has for both cost as much as reading the node.
"""

from __future__ import annotations

from typing import Any

from sardonyx import _torch_private
from sardonyx.aten.schema import METADATA_WRITES


def inputs(node: Any) -> list[Any]:
    return [node.inputsAt(index) for index in range(node.inputsSize())]


def outputs(node: Any) -> list[Any]:
    return [node.outputsAt(index) for index in range(node.outputsSize())]


def unpacked_into(node: Any) -> int | None:
    """The number of variables that its result is at once unpacked into."""
    uses = node.output().uses() if node.outputsSize() == 1 else []
    if len(uses) != 1 or uses[0].user.kind() != "prim::ListUnpack":
        return None
    return int(uses[0].user.outputsSize())


def names_read(node: Any) -> set[str]:
    """The values that it and its blocks take from outside."""
    names = {i.debugName() for i in inputs(node)}
    for block in node.blocks():
        made = {i.debugName() for i in block.inputs()}
        for inner in block.nodes():
            names |= names_read(inner) - made
            made |= {o.debugName() for o in outputs(inner)}
        names |= {o.debugName() for o in block.outputs()} - made
    return names


def raises(block: Any) -> bool:
    return any(node.kind() == "prim::RaiseException" for node in block.nodes())


def has_writes(block: Any) -> bool:
    """Whether an operator in it, or in the blocks of its nodes, writes a tensor in place."""
    for node in block.nodes():
        op = _torch_private.overload_of(node)
        if op is not None and op._schema.name not in METADATA_WRITES and _writes_a_tensor(op):
            return True
        if any(map(has_writes, node.blocks())):
            return True
    return False


def _writes_a_tensor(op: Any) -> bool:
    return any(
        argument.alias_info is not None and argument.alias_info.is_write
        for argument in op._schema.arguments
        if str(argument.type) == "Tensor"
    )
