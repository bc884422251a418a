"""Sizes 0 and 1 that a model treats as special.

A dynamic dim of such a size, and such an integer, is recorded with another one. What the model's
Python decided there must hold at the example itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import SizeCondition
from sardonyx.aten.graph import Block, Node, Value
from sardonyx.aten.type_inference import TypeInference
from sardonyx.capture.capture_errors import SpecialSizeError, with_constant_numbers
from sardonyx.capture.flat_model import Recorded
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.symbolic_shapes.guards import at_sizes
from sardonyx.errors import CaptureError
from sardonyx.notes import Note, NoteKind, error_at


def checked_at_example(
    capture: Callable[[Any, PreparedInputs], Recorded], model: Any, inputs: PreparedInputs
) -> Recorded:
    """The recording, which holds for the example itself: the numbers and the optional dims whose
    size there the model treats as special are fixed; a required one is refused."""
    recorded = capture(model, inputs)
    again = partial(checked_at_example, capture)
    taken = recorded.inputs
    changed = [p for p in taken.input_positions if _is_changed(taken, p)]
    broken = _broken_at_example(recorded, changed)
    if not broken:
        return recorded
    numbers = [
        p for p in taken.number_positions if p in changed and _broken_at_example(recorded, [p])
    ]
    if numbers:
        return with_constant_numbers(again, model, inputs, numbers, None)
    dims = {
        (position, axis): dim
        for position in changed
        if isinstance(leaf := taken.leaves[position], torch.Tensor)
        for axis, dim in taken.dynamic[position].items()
        if leaf.shape[axis] != taken.capture_leaves[position].shape[axis]
    }
    optional = {place for place, dim in dims.items() if not dim.required}
    if optional:
        return again(model, inputs.without_dynamic(optional))
    with contextlib.suppress(CaptureError):
        if _are_one_program(recorded, capture(model, inputs.without_dynamic(set(dims)))):
            return _without_conditions(recorded, broken)
    sizes = {dim.name: taken.leaves[p].shape[axis] for (p, axis), dim in dims.items()}
    special = ", ".join(f"size {size} of {name!r}" for name, size in sizes.items())
    error = error_at(
        SpecialSizeError,
        broken[0].place,
        f"the model treats {special} specially: what it does there is not what it does at other"
        " sizes",
        "an example in which every dynamic dim is 2 or more, or a fixed dim",
    )
    position, axis = next((d for d in dims if _broken_at_example(recorded, [d[0]])), min(dims))
    error.dim = taken.names[position], axis
    raise error


def _is_changed(inputs: PreparedInputs, position: int) -> bool:
    """Whether a leaf is recorded with another size than the example's."""
    leaf, recorded = inputs.leaves[position], inputs.capture_leaves[position]
    if isinstance(leaf, torch.Tensor):
        return bool(leaf.shape != recorded.shape)
    return bool(leaf != recorded)


def _broken_at_example(recorded: Recorded, positions: Collection[int]) -> list[SizeCondition]:
    """The conditions that the model decided by and that do not hold where these inputs are those of
    the example."""
    if not positions or not recorded.decisions:
        return []
    graph, inputs = recorded.graph, recorded.inputs
    sizes = _torch_private.example_sizes(TypeInference.for_graph(graph).mode)
    sizes |= inputs.example_symbols(graph.symbol_names, positions)
    return [c for c in recorded.decisions if at_sizes(c.expression, sizes) == sympy.false]


def _without_conditions(recorded: Recorded, broken: list[SizeCondition]) -> Recorded:
    """The recording, which serves other sizes too."""
    places = {condition.place for condition in broken}
    notes = tuple(
        n for n in map(Note.of, recorded.notes) if n.kind != NoteKind.GUARD or n.place not in places
    )
    conditions = tuple(c for c in recorded.conditions or () if c not in broken)
    return replace(recorded, notes=notes, conditions=conditions)


def _are_one_program(recorded: Recorded, special: Recorded) -> bool:
    """Whether two recordings of a model make the same calls at the sizes of the example: however it
    decided, the one with more dynamic dims serves both."""
    of_values: dict[Value, Value] = {}
    sizes = [
        {
            **_torch_private.example_sizes(TypeInference.for_graph(r.graph).mode),
            **r.inputs.example_symbols(r.graph.symbol_names, r.inputs.input_positions),
        }
        for r in (recorded, special)
    ]

    def are_equal(one: Any, other: Any) -> bool:
        if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
            return len(one) == len(other) and all(map(are_equal, one, other))
        if isinstance(one, Value) and isinstance(other, Value):
            if one.constant is None or other.constant is None:
                return of_values.get(one) is other
            a, b = one.constant, other.constant
            return a is b or (a.dtype == b.dtype and torch.equal(a, b))
        if isinstance(one, Node) and isinstance(other, Node):
            of_values.update(zip(one.outputs, other.outputs, strict=False))
            kind = are_equal([one.op, len(one.outputs)], [other.op, len(other.outputs)])
            arguments = [list(node.arguments.items()) for node in (one, other)]
            return kind and are_equal(*arguments) and are_equal(one.blocks, other.blocks)
        if isinstance(one, Block) and isinstance(other, Block):
            of_values.update(zip(one.inputs, other.inputs, strict=False))
            return are_equal(one.nodes, other.nodes) and are_equal(one.outputs, other.outputs)
        numbers = [
            at_sizes(each, known) if isinstance(each, sympy.Basic) else each
            for each, known in zip((one, other), sizes, strict=True)
        ]
        return bool(numbers[0] == numbers[1])

    return are_equal(recorded.graph, special.graph)
