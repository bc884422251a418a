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

import torch

from sardonyx._torch_private import SizeCondition
from sardonyx.aten.location import place_text
from sardonyx.capture.capture_errors import SpecialSizeError, with_constant_numbers
from sardonyx.capture.flat_model import Recorded
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.symbolic_shapes.special_sizes import SpecialSizes, false_decisions
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
    given = partial(taken.free_sizes, taken.leaves)
    used = partial(taken.free_sizes, taken.capture_leaves)
    changed = [p for p in taken.input_positions if given([p]) != used([p])]

    def broken_at(positions: Collection[int]) -> list[SizeCondition]:
        """What does not hold where these inputs are those of the example."""
        return false_decisions(recorded, given(positions))

    broken = broken_at(changed) if changed else []
    if not broken:
        return recorded
    numbers = [p for p in taken.number_positions if p in changed and broken_at([p])]
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
    checks = SpecialSizes(capture, model, recorded)
    with contextlib.suppress(CaptureError):
        if all(c.in_model_code for c in broken):  # else a squeeze: the file keeps the dim
            checks.check()
            return _with_notes(recorded, broken, checks)
    error = error_at(
        SpecialSizeError,
        broken[0].place,
        f"the model treats {special} specially: what it does there is not what it does at other"
        " sizes",
        "an example in which every dynamic dim is 2 or more, or a fixed dim",
    )
    position, axis = next((d for d in dims if broken_at([d[0]])), min(dims))
    error.dim = taken.names[position], axis
    raise error


def _with_notes(recorded: Recorded, broken: list[SizeCondition], checks: SpecialSizes) -> Recorded:
    """The recording, which serves the branches too: what they assume is assumed of it."""
    places = {condition.place for condition in broken}
    kept = {c.place for c in recorded.decisions if c not in broken}
    notes = [Note.of(note) for note in recorded.notes]
    notes = [n for n in notes if n.kind != NoteKind.GUARD or n.place not in places - kept]
    notes += [Note.of(note) for branch in checks.branches.values() for note in branch.notes]
    names = {name for fixed in checks.branches for name in fixed}
    sizes = ", ".join(f"{n} = {size}" for n, size in checks.example.items() if n in names)
    others = "".join(
        f", {name} = {', '.join(map(str, sorted({at[name] for at in checks.equal_at})))}"
        for name in checks.example
        if name not in names
    )
    notes += [
        Note(
            f"the model decides by {sizes} at {place_text(place)}: the file has what it does at"
            f" other sizes, which was checked to give the same results at {sizes}{others}",
            NoteKind.CHECKED_BRANCH,
            place,
        )
        for place in sorted(places)
    ]
    return replace(recorded, notes=tuple(dict.fromkeys(notes)))
