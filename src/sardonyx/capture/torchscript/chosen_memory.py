"""`y = a if c else b; y += 1`: a variable holds one of two tensors, and that tensor is written.

Which one depends on the branch. What follows, up to the last such write, is then read once for each
of them, so that a write is always one of a tensor that is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sardonyx import _torch_private


def read_for_each_choice(
    branch: Any, following: Sequence[Any], outputs: Sequence[Any]
) -> int | None:
    """How many of the nodes that follow a `prim::If` are to know which side was taken: it gives one
    of two tensors, one from outside at least, that is read under its own name, too, and they write
    it. None where no node is. `outputs`: what is used after them."""
    concerned: set[str] = set()
    chosen: set[str] = set()
    for place, output in enumerate(branch.outputs()):
        sides = [list(block.outputs())[place] for block in branch.blocks()]
        if output.type().kind() != "TensorType" or sides[0] == sides[1]:
            continue
        outside = [v for side in sides for v in _memory_of(side) if _is_outside(v, branch)]
        if any(_is_used_again(value, branch) for value in outside):
            concerned |= {_name(value) for value in outside}
            chosen.add(output.debugName())
    if not concerned:
        return None
    writes = [
        place
        for place, node in enumerate(following)
        if any(_name(value) in concerned for value in _written_by(node))
    ]
    last_use = _last_use(chosen, following, outputs)
    return max((place + 1 for place in writes if place <= last_use), default=None)


def _last_use(chosen: set[str], following: Sequence[Any], outputs: Sequence[Any]) -> int:
    """The place of the last node that uses what was chosen, or a view of it."""
    if any(_is_of(chosen, value) for value in outputs):
        return len(following)
    last = -1
    for place, node in enumerate(following):
        for user in _with_inner(node):
            if any(_is_of(chosen, value) for value in user.inputs()):
                if not list(user.blocks()) and _keeps_its_inputs(user):
                    return len(following)
                last = place
    return last


def _with_inner(node: Any) -> Iterator[Any]:
    yield node
    for block in node.blocks():
        for inner in block.nodes():
            yield from _with_inner(inner)


def _is_of(chosen: set[str], value: Any) -> bool:
    """Whether a value may be a chosen one, or a view of it."""
    seen: set[str] = set()
    pending = [value]
    while pending:
        value = pending.pop()
        if value.debugName() in chosen:
            return True
        if value.debugName() not in seen:
            seen.add(value.debugName())
            pending += _sources(value)
    return False


def _keeps_its_inputs(node: Any) -> bool:
    """Whether a list, a tuple or an object may hold them afterwards."""
    if _torch_private.overload_of(node) is None:
        return True
    return any(output.type().kind() not in _HOLDS_NO_TENSOR for output in node.outputs())


_HOLDS_NO_TENSOR = frozenset({"TensorType", "IntType", "FloatType", "BoolType", "NumberType"})


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
