"""The model recorded by torch.jit.trace."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import sympy
import torch

from sardonyx.capture.baked_sizes import differing_constants
from sardonyx.capture.export_capture import fixed_dim_error, model_raises
from sardonyx.capture.flat_model import FlatModel, OutputRecord, Recorded
from sardonyx.capture.inputs import PreparedInputs
from sardonyx.capture.location import ModuleNames, innermost_user_place, place_text
from sardonyx.capture.size_conditions import SymbolOrigin, check_conditions
from sardonyx.capture.torchscript import GraphReader
from sardonyx.errors import CaptureError, DynamicDimError, format_message

_BAKES = {
    "Python boolean": "a tensor decides a Python branch",
    "Python integer": "a tensor becomes a Python int",
    "Python float": "a tensor becomes a Python float",
    "Python number": "a tensor becomes a Python number",
    "Python index": "a tensor becomes a Python index",
    "NumPy array": "a tensor becomes a NumPy array",
    "Iterating over a tensor": "a Python loop runs over a tensor",
    "torch.tensor results": "torch.tensor() makes a constant",
    "Using len": "len() of a tensor is a constant",
    "torch.from_numpy": "a NumPy array becomes a constant",
    "Python list": "a tensor becomes a Python list",
}


def capture_by_trace(model: Any, inputs: PreparedInputs) -> Recorded:
    record = OutputRecord()
    flat = FlatModel(model, inputs, record)
    tensors = tuple(
        _traced_input(leaf)
        for leaf, is_input in zip(inputs.capture_leaves, inputs.is_input, strict=True)
        if is_input
    )
    with _tracer_warnings() as baked:
        traced = _trace(flat, tensors, model, inputs)
    reader = GraphReader(flat, ModuleNames.of(model))
    for tensor, position in zip(tensors, inputs.input_positions, strict=True):
        axes = inputs.dynamic[position] if isinstance(inputs.leaves[position], torch.Tensor) else {}
        reader.add_input(inputs.names[position], tensor, {a: d.name for a, d in axes.items()})
    # Read off now: a symbol that gets fixed is no longer seen in the shape of its input.
    symbols = _symbols_of_dims(reader, inputs)
    origins = {
        symbol: SymbolOrigin(inputs.dynamic[p][a].name, inputs.dynamic[p][a].required)
        for (p, a), symbol in symbols.items()
    }
    graph = reader.read(traced.inlined_graph)
    fixed: set[tuple[int, int]] = set()
    for (position, axis), symbol in symbols.items():
        if symbol in reader.fixed:
            size, place = reader.fixed[symbol]
            dim = inputs.dynamic[position][axis]
            if dim.required:
                raise fixed_dim_error(inputs.names[position], axis, dim, size, [place.describe()])
            fixed.add((position, axis))
    if fixed:
        return capture_by_trace(model, inputs.without_dynamic(fixed))
    notes = check_conditions(reader.conditions, origins)
    if symbols:
        _check_other_sizes(model, inputs, tensors, traced.inlined_graph, reader, list(baked))
    return Recorded(graph, record, inputs, tuple(notes), tuple(baked))


def _traced_input(leaf: Any) -> torch.Tensor:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone()
    return torch.tensor(leaf, dtype=torch.float32 if isinstance(leaf, float) else torch.int64)


def _symbols_of_dims(
    reader: GraphReader, inputs: PreparedInputs
) -> dict[tuple[int, int], sympy.Symbol]:
    """By (position of the leaf, axis)."""
    return {
        (position, axis): value.shape[axis]
        for value, position in zip(reader.inputs, inputs.input_positions, strict=True)
        if value.shape
        for axis in inputs.dynamic[position]
    }


def _trace(
    flat: FlatModel, tensors: tuple[torch.Tensor, ...], model: Any, inputs: PreparedInputs
) -> Any:
    if not tensors:
        raise CaptureError('a model without inputs cannot be traced; use capture="export"')
    try:
        return torch.jit.trace(flat, tensors, check_trace=False, strict=False)
    except CaptureError:
        raise
    except Exception as error:
        raise model_raises(error, model, inputs) from error


def _check_other_sizes(
    model: Any,
    inputs: PreparedInputs,
    tensors: tuple[torch.Tensor, ...],
    graph: Any,
    reader: GraphReader,
    baked: list[str],
) -> None:
    """Traces once more with other dynamic sizes: what differs was baked from a size."""
    with _tracer_warnings():
        difference = differing_constants(
            lambda other: torch.jit.trace(
                FlatModel(model, inputs, OutputRecord()), other, check_trace=False, strict=False
            ).inlined_graph,
            graph,
            tensors,
            [inputs.dynamic[position] for position in inputs.input_positions],
        )
    if difference is None:
        return
    raise DynamicDimError(
        format_message(
            f"tracing bakes a size that was asked to be dynamic: {difference.text}",
            [
                ("at", reader.location(difference.node).describe()),
                ("by", baked),
                ("try", 'capture="export", or sizes as x.shape[i] without int(), len() or math.*'),
            ],
        )
    )


@contextlib.contextmanager
def _tracer_warnings() -> Iterator[dict[str, None]]:
    """One line for each place where tracing turns a computed value into a constant."""
    lines: dict[str, None] = {}

    def note(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, torch.jit.TracerWarning):
            return
        text = str(message)
        what = next((short for key, short in _BAKES.items() if key in text), text.splitlines()[0])
        place = place_text(innermost_user_place(sys._getframe(1)))
        lines[f"tracing bakes a value: {what} at {place}"] = None

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield lines
