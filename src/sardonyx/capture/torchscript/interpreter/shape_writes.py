"""`y.unsqueeze_(0)`: operators that change the shape of a tensor in place.

The variables of the tensor hold the view from then on. That is right only where no other value can
be the same tensor: an operator made it in the same block, and nothing before the change may have
kept or returned it. Everything else is refused.
"""

from __future__ import annotations

from typing import Any

from sardonyx import _torch_private
from sardonyx.capture.torchscript.refusals import ScriptRefusal
from sardonyx.capture.torchscript.types.values import NUMBERS
from sardonyx.functionalization.alias_analysis import COMPOSITES_WITH_NEW_MEMORY

_HOLDS_NO_TENSOR = frozenset({*NUMBERS, "NumberType", "DeviceObjType"})


def names_of(change: Any, is_straight: bool) -> list[str]:
    """The variables of the tensor that a node changes: the result of an operator, and the results
    of in-place operators on it, which are the same tensor. `is_straight`: the conditions of all
    branches around the node are known."""
    first = change.inputsAt(0)
    while _is_in_place(first.node()):
        first = first.node().inputsAt(0)
    names = [first]
    for name in names:
        names += [u.user.output() for u in name.uses() if u.offset == 0 and _is_in_place(u.user)]
    is_local = _is_made_here(first.node(), change, is_straight)
    if not is_local or not all(_is_private(name, change) for name in names):
        raise ScriptRefusal(
            f"{change.kind()} changes the shape of a tensor that another variable may hold too",
            "use the operator without `_`, which returns a new tensor",
        )
    return [name.debugName() for name in names]


def _is_made_here(node: Any, change: Any, is_straight: bool) -> bool:
    """Whether a node makes a new tensor in the block of the change, or the program's inputs."""
    owner, around = _owner(node), _owners(change)
    if owner not in around or (node.kind() == "prim::Param" and owner is not None):
        return False
    between = around[: around.index(owner)]
    is_reached = not between or (is_straight and all(n.kind() == "prim::If" for n in between))
    return is_reached and (node.kind() == "prim::Param" or _makes_a_new_tensor(node))


def _is_private(value: Any, change: Any) -> bool:
    """Whether all that uses a value before a change of it only reads it."""
    for use in value.uses():
        user = use.user
        if user.kind() == "prim::Return":  # of a block: its node is what has the value
            user = _owner(user)
        is_later = user in _owners(change) or user == change or user.isAfter(change)
        if not is_later and not _only_reads(user):
            return False
    return True


def _only_reads(node: Any) -> bool:
    """Whether no result of a node is, or holds, one of its inputs, but for an in-place operator."""
    kinds = [_item_kind(output.type()) for output in node.outputs()]
    is_of_numbers = bool(kinds) and all(kind in _HOLDS_NO_TENSOR for kind in kinds)
    return is_of_numbers or _is_in_place(node) or _makes_a_new_tensor(node)


def _item_kind(kind: Any) -> str:
    while kind.kind() == "ListType":
        kind = kind.getElementType()
    return str(kind.kind())


def _owner(node: Any) -> Any:
    """The `prim::If` or `prim::Loop` around a node; None in the outermost block."""
    return node.owningBlock().owningNode()


def _owners(node: Any) -> list[Any]:
    """From the innermost out, None at the end."""
    found = []
    while node is not None:
        node = _owner(node)
        found.append(node)
    return found


def _is_in_place(node: Any) -> bool:
    """`y.add_(1)`, which returns y."""
    op = _torch_private.overload_of(node)
    if op is None or not op._schema.is_mutable or len(op._schema.returns) != 1:
        return False
    first, returned = op._schema.arguments[0].alias_info, op._schema.returns[0].alias_info
    return None not in (first, returned) and bool(first.is_write and returned.is_write)


def _makes_a_new_tensor(node: Any) -> bool:
    """Whether its result is a view or a copy, and never an input itself: `contiguous()` may be."""
    op = _torch_private.overload_of(node)
    if op is None or op._schema.is_mutable or not _torch_private.is_known_to_dispatcher(op):
        return False
    return not _torch_private.is_composite(op) or op._schema.name in COMPOSITES_WITH_NEW_MEMORY
