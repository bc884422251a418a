"""Results whose number of dims depends on sizes in PyTorch: a file has one number of dims."""

from __future__ import annotations

import torch

from sardonyx.aten.graph import AtenGraph, Node, Value
from sardonyx.notes import Note, guard_note

aten = torch.ops.aten
_OF_ROWS = (aten.cov.default, aten.corrcoef.default)
_SOLUTIONS = (
    aten._linalg_solve_ex.default,
    aten.linalg_solve_ex.default,
    aten.linalg_solve.default,
)


_SQUEEZES = (aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)


def notes_on_ranks(graph: AtenGraph) -> list[Note]:
    """What a recording with dynamic sizes holds for, as far as numbers of dims depend on it."""
    notes: dict[Note, None] = {}
    for node in graph.nodes:
        condition = _condition(node)
        if condition is not None:
            where = node.location
            place = (where.file, where.line, where.text)
            notes[guard_note(condition, place=place)] = None
    return list(notes)


def _condition(node: Node) -> str | None:
    if node.op in _OF_ROWS:
        rows = node.arguments["self"]
        if isinstance(rows, Value) and len(rows.shape) == 2 and not isinstance(rows.shape[0], int):
            return f"there are two rows or more: {node.op._opname} of one has no dims"
    if node.op in _SQUEEZES:
        axis = _axis_that_may_be_one(node)
        if axis is not None:
            return f"the size of dim {axis} is not 1: squeeze drops it there"
    if node.op in _SOLUTIONS:
        matrices, right = node.arguments["A"], node.arguments["B"]
        if isinstance(matrices, Value) and isinstance(right, Value) and _may_be(right, matrices):
            return (
                "the right side is not one vector for each matrix:"
                " of the shape of the matrices without their last dim it is taken for that"
            )
    return None


def _axis_that_may_be_one(node: Node) -> int | None:
    """The first dim of dynamic size that a squeeze would drop."""
    tensor, dims = node.arguments["self"], node.arguments.get("dim")
    if not isinstance(tensor, Value) or not tensor.shape:
        return None
    rank = len(tensor.shape)
    axes = range(rank) if dims is None else dims if isinstance(dims, list) else [dims]
    for axis in axes:
        size = tensor.shape[axis]
        if not isinstance(size, int) and (size - 1).is_zero is not False:
            return int(axis % rank)
    return None


def _may_be(right: Value, matrices: Value) -> bool:
    """Whether a right side that is recorded as matrices could have the shape that means vectors."""
    vectors = matrices.shape[:-1]
    if len(right.shape) != len(vectors) or len(vectors) < 2 or right.shape == vectors:
        return False
    return not any(
        isinstance(size, int) and isinstance(other, int) and size != other
        for size, other in zip(right.shape, vectors, strict=True)
    )
