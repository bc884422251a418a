"""Results whose number of dims depends on sizes in PyTorch: a file has one number of dims."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
import torch

from sardonyx.aten.control_flow import all_nodes
from sardonyx.aten.graph import AtenGraph, Dim, Node, Value
from sardonyx.notes import Note, guard_note

aten = torch.ops.aten
_OF_ROWS = (aten.cov.default, aten.corrcoef.default)
_SOLUTIONS = (
    aten._linalg_solve_ex.default,
    aten.linalg_solve_ex.default,
    aten.linalg_solve.default,
)


def notes_on_ranks(graph: AtenGraph) -> list[Note]:
    """What a recording with dynamic sizes holds for, as far as numbers of dims depend on it."""
    notes: dict[Note, None] = {}
    for node in all_nodes(graph.nodes):
        condition = _condition(node)
        if condition is not None:
            where = node.location
            place = (where.file, where.line, where.text)
            text, expression = condition
            names = {s: sympy.Symbol(name) for s, name in graph.symbol_names.items()}
            notes[guard_note(text, place=place, expression=expression.xreplace(names))] = None
    return list(notes)


def _condition(node: Node) -> tuple[str, sympy.Basic] | None:
    if node.op in _OF_ROWS:
        rows = node.arguments["self"]
        if isinstance(rows, Value) and len(rows.shape) == 2 and not isinstance(rows.shape[0], int):
            text = f"there are two rows or more: {node.op._opname} of one has no dims"
            return text, sympy.Ge(rows.shape[0], 2)
    for axis in kept_axes(node):
        text = f"the size of dim {axis} is not 1: squeeze drops it there"
        return text, sympy.Ne(node.arguments["self"].shape[axis], 1)
    if node.op in _SOLUTIONS:
        matrices, right = node.arguments["A"], node.arguments["B"]
        if isinstance(matrices, Value) and isinstance(right, Value) and _may_be(right, matrices):
            pairs = zip(right.shape, matrices.shape[:-1], strict=True)
            return (
                "the right side is not one vector for each matrix:"
                " of the shape of the matrices without their last dim it is taken for that",
                sympy.Or(*(sympy.Ne(one, other) for one, other in pairs)),
            )
    return None


def kept_axes(node: Node) -> list[int]:
    """The dims of dynamic size that a squeeze would drop where that is 1."""
    if node.op._schema.name.removesuffix("_") not in ("aten::squeeze", "aten::squeeze_copy"):
        return []
    tensor, dims = node.arguments["self"], node.arguments.get("dim")
    if not isinstance(tensor, Value):
        return []
    return [a for a in squeezed_axes(tensor.shape, dims) if may_be_one(tensor.shape[a])]


def squeezed_axes(shape: Sequence[Dim], dims: int | list[int] | None) -> list[int]:
    """The dims that a squeeze drops where they are 1."""
    axes = range(len(shape)) if dims is None else dims if isinstance(dims, list) else [dims]
    return sorted({axis % len(shape) for axis in axes}) if shape else []


def may_be_one(size: Dim) -> bool:
    return not isinstance(size, int) and (size - 1).is_zero is not False


def _may_be(right: Value, matrices: Value) -> bool:
    """Whether a right side that is recorded as matrices could have the shape that means vectors."""
    vectors = matrices.shape[:-1]
    if len(right.shape) != len(vectors) or len(vectors) < 2 or right.shape == vectors:
        return False
    return not any(
        isinstance(size, int) and isinstance(other, int) and size != other
        for size, other in zip(right.shape, vectors, strict=True)
    )
