"""`y.unsqueeze_(0)`: operators that change the shape of a tensor in place.

What uses the tensor later uses the view. That is right only where no other value can be the same
tensor: an operator made it in the same block, and nothing before the change may have kept or
returned it. Everything else is refused.
"""

from __future__ import annotations

from typing import Any

from sardonyx import _torch_private
from sardonyx.aten.schema import METADATA_WRITES
from sardonyx.capture.torchscript.errors import ScriptRefusal
from sardonyx.capture.torchscript.types.values import NUMBERS
from sardonyx.functionalization.alias_analysis import COMPOSITES_WITH_NEW_MEMORY

_HOLDS_NO_TENSOR = frozenset({*NUMBERS, "NumberType", "DeviceObjType"})


def use_view_after(change: Any) -> None:
    """Later uses of the tensor that a node of our copy of the program changes are of its result."""
    tensor = change.inputsAt(0)
    earlier = [u.user for u in tensor.uses() if u.user != change and not u.user.isAfter(change)]
    if not _is_made_beside(tensor.node(), change) or not all(map(_only_reads, earlier)):
        raise ScriptRefusal(
            f"{change.kind()} changes the shape of a tensor that another variable may hold too",
            "use the operator without `_`, which returns a new tensor",
        )
    tensor.replaceAllUsesAfterNodeWith(change, change.output())


def _is_made_beside(node: Any, change: Any) -> bool:
    """Whether a node makes a new tensor in the block of the change, or the program's inputs."""
    owner = node.owningBlock().owningNode()
    if owner != change.owningBlock().owningNode():
        return False
    return owner is None if node.kind() == "prim::Param" else _makes_a_new_tensor(node)


def _only_reads(node: Any) -> bool:
    """Whether no result of a node is, or holds, one of its inputs."""
    kinds = [_item_kind(output.type()) for output in node.outputs()]
    is_of_numbers = bool(kinds) and all(kind in _HOLDS_NO_TENSOR for kind in kinds)
    return is_of_numbers or _makes_a_new_tensor(node)


def _item_kind(kind: Any) -> str:
    while kind.kind() == "ListType":
        kind = kind.getElementType()
    return str(kind.kind())


def _makes_a_new_tensor(node: Any) -> bool:
    """Whether its result is a view or a copy, and never an input itself: `contiguous()` may be."""
    op = _torch_private.overload_of(node)
    if op is not None and op._schema.name in METADATA_WRITES:
        return True  # the view, which nothing else is after it
    if op is None or op._schema.is_mutable or not _torch_private.is_known_to_dispatcher(op):
        return False
    return not _torch_private.is_composite(op) or op._schema.name in COMPOSITES_WITH_NEW_MEMORY
