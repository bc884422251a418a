"""The model recorded by torch.jit.trace."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from sardonyx.capture.export_capture import fixed_dim_error, model_raises
from sardonyx.capture.flat_model import FlatModel, OutputRecord, Recorded
from sardonyx.capture.inputs import PreparedInputs
from sardonyx.capture.location import ModuleNames, shortened
from sardonyx.capture.torchscript import GraphReader
from sardonyx.errors import CaptureError

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
        leaf.detach().clone() if isinstance(leaf, torch.Tensor) else torch.tensor(leaf)
        for leaf, is_input in zip(inputs.capture_leaves, inputs.is_input, strict=True)
        if is_input
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced = _trace(flat, tensors)
    reader = GraphReader(flat, ModuleNames.of(model))
    positions = [i for i, is_input in enumerate(inputs.is_input) if is_input]
    for tensor, position in zip(tensors, positions, strict=True):
        axes = inputs.dynamic[position] if isinstance(inputs.leaves[position], torch.Tensor) else {}
        reader.add_input(inputs.names[position], tensor, {a: d.name for a, d in axes.items()})
    graph = reader.read(traced.inlined_graph)
    for value, position in zip(graph.inputs, positions, strict=True):
        for axis, dim in inputs.dynamic[position].items():
            fixed = reader.fixed.get(value.shape[axis])
            if fixed is not None and dim.required:
                size, place = fixed
                raise fixed_dim_error(inputs.names[position], axis, dim, size, [place.describe()])
    return Recorded(graph, record, baked=_baked(caught))


def _trace(flat: FlatModel, tensors: tuple[torch.Tensor, ...]) -> Any:
    if not tensors:
        raise CaptureError('a model without inputs cannot be traced; use capture="export"')
    try:
        return torch.jit.trace(flat, tensors, check_trace=False, strict=False)
    except CaptureError:
        raise
    except Exception as error:
        raise model_raises(error) from error


def _baked(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """One line for each place where tracing turned a computed value into a constant."""
    lines: dict[str, None] = {}
    for warning in caught:
        if not issubclass(warning.category, torch.jit.TracerWarning):
            continue
        text = str(warning.message)
        what = next((short for key, short in _BAKES.items() if key in text), text.splitlines()[0])
        file, line, code = shortened((warning.filename, warning.lineno, ""))
        lines[f"tracing bakes a value: {what} at {file}:{line}   {code}".rstrip()] = None
    return tuple(lines)
