"""`c = a if p else b; c.append(x)`: an object is changed that has other names, too.

Which one it is depends on a branch. What follows is then read once for each side, where it is
known. The same for tensors whose shape is changed (`c.unsqueeze_(0)`); what they hold is followed
later, by functionalize.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sardonyx import _torch_private
from sardonyx.aten.schema import METADATA_WRITES


def changes_in(nodes: Iterable[Any]) -> list[Any]:
    """The nodes of a program that change an object, or the shape of a tensor."""
    found = []
    for node in nodes:
        found += [node] if _is_change(node) else []
        for block in node.blocks():
            found += changes_in(block.nodes())
    return found


def is_one_of_two_changed(branch: Any, changes: Iterable[Any]) -> bool:
    """Whether the nodes that follow a `prim::If` in its block change what it gives, and that is
    what one of its sides got from outside, where it has another name."""
    changes = [change for change in changes if _follows(change, branch)]
    outside = list(_from_outside(branch)) if changes else []
    if not outside:
        return False
    chosen = _names(branch.outputs())
    objects = [value for value in outside if value.type().kind() in _OBJECTS]
    for change in changes:
        same = _names(_same_objects(change.inputsAt(0)))
        if change.kind() in METADATA_WRITES:
            if chosen & same and may_have_other_names(change):
                return True
        elif same & (chosen | _names(objects)):
            return any(_is_used_again(value, branch) for value in objects)
    return False


def _is_change(node: Any) -> bool:
    if node.kind() == "prim::SetAttr" or node.kind() in METADATA_WRITES:
        return True
    first = next(iter(node.inputs()), None)
    if first is None or first.type().kind() not in _OBJECTS:
        return False
    op = _torch_private.overload_of(node)
    alias = None if op is None else op._schema.arguments[0].alias_info
    return alias is not None and alias.is_write


def _from_outside(branch: Any) -> Iterator[Any]:
    """Tensors and objects that one side of a branch gives, and the branch found."""
    for place, output in enumerate(branch.outputs()):
        sides = [list(block.outputs())[place] for block in branch.blocks()]
        if output.type().kind() in _OBJECTS | {"TensorType"} and sides[0] != sides[1]:
            for side in sides:
                for value in _same_objects(side):
                    node = value.node()
                    if node.kind() in ("prim::Param", "prim::GetAttr") or node.isBefore(branch):
                        yield value


def _names(values: Any) -> set[str]:
    return {value.debugName() for value in values}


_OBJECTS = frozenset({"ListType", "DictType", "ClassType", "OptionalType"})


_MAY_GIVE_THEIR_INPUT = frozenset({"aten::contiguous", "aten::to", "aten::type_as"})


def may_have_other_names(change: Any) -> bool:
    """Whether a tensor whose shape is changed may be one that is used under another name."""
    tensors = list(_same_objects(change.inputsAt(0)))
    return len(tensors) > 1 and any(
        not any(True for _ in _sources(value)) and _is_used_again(value, change)
        for value in tensors
    )


def is_held_by_result(change: Any) -> bool:
    """Whether a tensor whose shape is changed may also be a result of a branch or a loop before, or
    what a loop around the change carries, and is read as that."""
    same = list(_same_objects(change.inputsAt(0)))
    names = _names(same) | _names(_results_of_carried(same))
    around = list(_around(change))
    for value in _handed_on(same, change):
        node = value.node()
        if value.debugName() in names or not _is_read(value, change):
            continue
        if node.kind() == "prim::Param":
            node = node.owningBlock().owningNode()
        if any(node == outer for outer in around):
            return True
        if node.kind() in ("prim::If", "prim::Loop") and _follows(change, node):
            return True
    return False


def _results_of_carried(values: Iterable[Any]) -> Iterator[Any]:
    """What loops give for the variables that they carry as one of the values."""
    for value in values:
        block = value.node().owningBlock()
        owner = block.owningNode()
        if value.node().kind() == "prim::Param" and owner is not None:
            place = _place(value, block.inputs())
            if owner.kind() == "prim::Loop" and place:
                yield list(owner.outputs())[place - 1]


def _is_read(value: Any, change: Any) -> bool:
    is_returned = any(
        use.user.kind() == "prim::Return" and use.user.owningBlock().owningNode() is None
        for use in value.uses()
    )
    return is_returned or _is_used_again(value, change)


def _handed_on(values: Sequence[Any], change: Any) -> Iterator[Any]:
    """All values that may be the object that one of the values is, as it goes into branches and
    loops and comes out of them. What a loop around the change makes anew in every iteration has
    changed by the time that the loop hands it on."""
    anew = [outer for outer in _around(change) if all(_is_inside(v, outer) for v in values)]
    seen: set[str] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value.debugName() not in seen:
            seen.add(value.debugName())
            yield value
            for use in value.uses():
                owner = use.user.owningBlock().owningNode()
                if use.user.kind() != "prim::Return" or not any(owner == n for n in anew):
                    pending += _receivers(use.user, use.offset)


def _is_inside(value: Any, node: Any) -> bool:
    return any(outer == node for outer in _around(value.node()))


def _receivers(user: Any, place: int) -> Iterator[Any]:
    """What has the object that a node is given at a place."""
    if user.kind() == "prim::Loop" and place >= 2:
        (block,) = user.blocks()
        yield list(block.inputs())[place - 1]
        yield list(user.outputs())[place - 2]
    elif user.kind() == "prim::Return":
        block = user.owningBlock()
        owner = block.owningNode()
        if owner is not None and owner.kind() == "prim::If":
            yield list(owner.outputs())[place]
        elif owner is not None and owner.kind() == "prim::Loop" and place:
            yield list(block.inputs())[place]
            yield list(owner.outputs())[place - 1]
    elif user.kind() in _MAY_GIVE_THEIR_INPUT and place == 0:
        yield user.output()


def _follows(change: Any, branch: Any) -> bool:
    """Whether it is, or is inside, a node after the branch in the same block."""
    owner = branch.owningBlock().owningNode()
    for node in (change, *_around(change)):
        if node.owningBlock().owningNode() == owner:
            return bool(node.isAfter(branch))
    return False


def _same_objects(value: Any) -> Iterator[Any]:
    """All values that may be the object that a value is."""
    seen: set[str] = set()
    pending = [value]
    while pending:
        value = pending.pop()
        if value.debugName() not in seen:
            seen.add(value.debugName())
            yield value
            pending += _sources(value)


def _sources(value: Any) -> Iterator[Any]:
    node = value.node()
    if node.kind() == "prim::Param":
        block = node.owningBlock()
        owner = block.owningNode()
        place = _place(value, block.inputs())
        if owner is not None and owner.kind() == "prim::Loop" and place:
            yield list(owner.inputs())[place + 1]
            yield list(block.outputs())[place]
    elif node.kind() == "prim::If":
        place = _place(value, node.outputs())
        yield from (list(block.outputs())[place] for block in node.blocks())
    elif node.kind() == "prim::Loop":
        place = _place(value, node.outputs())
        (block,) = node.blocks()
        yield list(node.inputs())[place + 2]
        yield list(block.outputs())[place + 1]
    elif node.kind() in ("prim::unchecked_cast", "prim::unchecked_unwrap_optional"):
        yield from node.inputs()
    elif node.kind() in _MAY_GIVE_THEIR_INPUT:
        yield node.inputsAt(0)
    else:
        op = _torch_private.overload_of(node)
        if op is not None and any(
            r.alias_info and r.alias_info.is_write for r in op._schema.returns
        ):
            yield node.inputsAt(0)


def _place(value: Any, values: Any) -> int:
    return [v.debugName() for v in values].index(value.debugName())


def _is_used_again(value: Any, change: Any) -> bool:
    """After the change, or in another iteration of a loop around it, or as part of an object."""
    if value.node().kind() == "prim::GetAttr":
        return True
    for use in value.uses():
        user = use.user
        if user.kind() == "prim::Return" or user == change:
            continue
        if user.isAfter(change) or _in_one_loop(user, change) or _keeps_its_inputs(user):
            return True
    return False


def _in_one_loop(user: Any, change: Any) -> bool:
    loops = [n for n in _around(change) if n.kind() == "prim::Loop"]
    return any(outer == loop for loop in loops for outer in _around(user))


def _around(node: Any) -> Iterator[Any]:
    while node is not None:
        block = node.owningBlock()
        node = None if block is None else block.owningNode()
        if node is not None:
            yield node


def _keeps_its_inputs(node: Any) -> bool:
    """Whether a list, a tuple or an object may hold them afterwards."""
    if node.kind() in ("prim::If", "prim::Loop"):
        return False
    if _torch_private.overload_of(node) is None:
        return True
    return any(output.type().kind() not in _HOLDS_NO_TENSOR for output in node.outputs())


_HOLDS_NO_TENSOR = frozenset({"TensorType", "IntType", "FloatType", "BoolType", "NumberType"})
