"""`y = a if c else b; y += 1`: a variable holds one of two tensors, and that tensor is written.

Which one depends on the branch. What follows is then read once for each of them, so that a write is
always one of a tensor that is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sardonyx import _torch_private


def writes_what_a_branch_chose(branch: Any, following: Sequence[Any]) -> bool:
    """Whether a `prim::If` gives one of two tensors, one from outside at least, that the nodes
    which follow write, and that is read under its own name, too."""
    written: list[str] | None = None
    for place, output in enumerate(branch.outputs()):
        sides = [list(block.outputs())[place] for block in branch.blocks()]
        if output.type().kind() != "TensorType" or sides[0] == sides[1]:
            continue
        outside = [v for side in sides for v in _memory_of(side) if _is_outside(v, branch)]
        if any(_is_used_again(value, branch) for value in outside):
            if written is None:
                written = [_name(v) for node in following for v in _written_by(node)]
            if any(_name(value) in written for value in outside):
                return True
    return False


def _name(value: Any) -> str:
    """The same for all reads of an attribute."""
    node = value.node()
    if node.kind() != "prim::GetAttr":
        return str(value.debugName())
    return f"{_name(next(node.inputs()))}.{node.s('name')}"


def _memory_of(value: Any, seen: frozenset[str] = frozenset()) -> Iterator[Any]:
    """The tensors whose memory a value may be a view of."""
    if value.debugName() in seen:
        return
    seen |= {value.debugName()}
    sources = list(_sources(value))
    if not sources:
        yield value
    for source in sources:
        yield from _memory_of(source, seen)


def _sources(value: Any) -> Iterator[Any]:
    node = value.node()
    if node.kind() == "prim::Param":
        block = node.owningBlock()
        node = block.owningNode()
        if node is not None and node.kind() == "prim::Loop":
            place = _place(value, block.inputs())
            yield from list(node.inputs())[place + 1 : place + 2] if place else ()
            yield from list(block.outputs())[place : place + 1] if place else ()
    elif node.kind() == "prim::If":
        place = _place(value, node.outputs())
        yield from (list(block.outputs())[place] for block in node.blocks())
    elif node.kind() == "prim::Loop":
        place = _place(value, node.outputs())
        (block,) = node.blocks()
        yield list(node.inputs())[place + 2]
        yield list(block.outputs())[place + 1]
    else:
        yield from _arguments(node, is_written=False)


def _place(value: Any, values: Any) -> int:
    return [v.debugName() for v in values].index(value.debugName())


def _arguments(node: Any, *, is_written: bool) -> Iterator[Any]:
    """The inputs that a result of an operator shares its memory with, or that it writes."""
    op = _torch_private.overload_of(node)
    if op is None or not (is_written or any(r.alias_info for r in op._schema.returns)):
        return
    for parameter, source in zip(op._schema.arguments, node.inputs(), strict=False):
        alias = parameter.alias_info
        if alias is not None and (alias.is_write or not is_written):
            yield source


def _written_by(node: Any) -> Iterator[Any]:
    for target in _arguments(node, is_written=True):
        yield from _memory_of(target)
    for block in node.blocks():
        for inner in block.nodes():
            yield from _written_by(inner)


def _is_outside(value: Any, branch: Any) -> bool:
    node = value.node()
    return node.kind() in ("prim::Param", "prim::GetAttr") or bool(node.isBefore(branch))


def _is_used_again(value: Any, branch: Any) -> bool:
    """After the branch, or in another iteration of a loop around it."""
    if value.node().kind() == "prim::GetAttr":
        return True
    users = [use.user for use in value.uses()]
    users = [u for u in users if not _is_inside(u, branch)]
    return any(u.isAfter(branch) for u in users) or bool(users and _loop_around(branch))


def _is_inside(node: Any, outer: Any) -> bool:
    while node is not None:
        block = node.owningBlock()
        node = None if block is None else block.owningNode()
        if node is not None and node == outer:
            return True
    return False


def _loop_around(node: Any) -> bool:
    while node is not None and node.kind() != "prim::Loop":
        block = node.owningBlock()
        node = None if block is None else block.owningNode()
    return node is not None
