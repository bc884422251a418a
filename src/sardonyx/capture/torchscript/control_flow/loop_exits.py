"""How a loop without a count ends: by a flag that its body sets.

`while True` with a `return` inside leaves flags behind. Where every way out of the body sets such a
flag, it is known after the loop.
"""

from __future__ import annotations

from typing import Any


def constants_at_exit(body: Any) -> dict[int, bool]:
    """The flags that a loop carries and that have one value whenever its body stops the loop, by
    their place among the carried values."""
    goes_on, *carried = body.outputs()
    found = {}
    for place, value in enumerate(carried):
        if value.type().kind() == "BoolType":
            flag, *others = _values_where_false(goes_on, value) or {None}
            if flag is not None and not others:
                found[place] = flag
    return found


def _values_where_false(condition: Any, value: Any) -> set[bool | None]:
    """The possible values where a condition is false; None for an unknown one."""
    known = _constant(condition)
    if known is not None:
        return set() if known else {_constant(value)}
    branch = condition.node()
    if branch.kind() == "aten::__and__":
        # `while a and b`: false where either is.
        return {v for operand in branch.inputs() for v in _values_where_false(operand, value)}
    if branch.kind() != "prim::If":
        return {_constant(value)}
    names = [output.debugName() for output in branch.outputs()]
    place = names.index(condition.debugName())
    inner = names.index(value.debugName()) if value.debugName() in names else None
    found: set[bool | None] = set()
    for block in branch.blocks():
        outputs = list(block.outputs())
        found |= _values_where_false(outputs[place], value if inner is None else outputs[inner])
    return found


def _constant(value: Any) -> bool | None:
    node = value.node()
    if node.kind() != "prim::Constant" or value.type().kind() != "BoolType":
        return None
    return bool(value.toIValue())
