"""Sizes 0 and 1 that a model treats as special.

A dynamic dim of such a size, and such an integer, is recorded with another one. What the model's
Python decided there must hold at the example itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import SizeCondition
from sardonyx.aten.type_inference import TypeInference
from sardonyx.capture.capture_errors import SpecialSizeError, with_constant_numbers
from sardonyx.capture.flat_model import Recorded
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.symbolic_shapes.guards import at_sizes
from sardonyx.notes import error_at


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
    if broken is None:
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
    sizes = {dim.name: taken.leaves[p].shape[axis] for (p, axis), dim in dims.items()}
    special = ", ".join(f"size {size} of {name!r}" for name, size in sizes.items())
    raise error_at(
        SpecialSizeError,
        broken.place,
        f"the model treats {special} specially: what it does there is not what it does at other"
        " sizes",
        "an example in which every dynamic dim is 2 or more, or a fixed dim",
    )


def _is_changed(inputs: PreparedInputs, position: int) -> bool:
    """Whether a leaf is recorded with another size than the example's."""
    leaf, recorded = inputs.leaves[position], inputs.capture_leaves[position]
    if isinstance(leaf, torch.Tensor):
        return bool(leaf.shape != recorded.shape)
    return bool(leaf != recorded)


def _broken_at_example(recorded: Recorded, positions: Collection[int]) -> SizeCondition | None:
    """The first condition that the model decided by and that does not hold where these inputs are
    those of the example."""
    if not positions or not recorded.decisions:
        return None
    graph, inputs = recorded.graph, recorded.inputs
    sizes = _torch_private.example_sizes(TypeInference.for_graph(graph).mode)
    sizes |= inputs.example_symbols(graph.symbol_names, positions)
    return next(
        (c for c in recorded.decisions if at_sizes(c.expression, sizes) == sympy.false), None
    )
