"""The model recorded by torch.export: non-strict, then strict."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch.export import Dim, ExportedProgram

from sardonyx import _torch_private
from sardonyx.capture import tree
from sardonyx.capture.dynamic import DynamicAxes, DynamicDim
from sardonyx.capture.exported import graph_from_exported_program
from sardonyx.capture.flat_model import FlatModel, OutputRecord, Recorded
from sardonyx.capture.graph import AtenGraph
from sardonyx.capture.infer import TypeInference
from sardonyx.capture.inputs import PreparedInputs
from sardonyx.capture.location import ModuleNames, from_stack_trace, place_text
from sardonyx.capture.recurrent_shapes import SHAPE_RULES
from sardonyx.capture.size_conditions import (
    ConditionWatch,
    SizeCondition,
    SymbolOrigin,
    check_conditions,
)
from sardonyx.errors import CaptureError, DynamicDimError, format_message


def capture_by_export(model: Any, inputs: PreparedInputs) -> Recorded:
    recorded, fixed = _captured(model, inputs)
    if not fixed:
        return recorded
    settled = inputs.without_dynamic(fixed)
    if settled.recorded_sizes == inputs.recorded_sizes:
        return replace(recorded, inputs=settled)
    # Recorded at a size that is not the example's, and then fixed to it.
    return capture_by_export(model, settled)


def _captured(model: Any, inputs: PreparedInputs) -> tuple[Recorded, set[tuple[int, int]]]:
    """The recording, and the optional dynamic dims (input, axis) that the model fixes."""
    record = OutputRecord()
    flat = FlatModel(model, inputs, record)
    leaves = tuple(
        torch.tensor(leaf, dtype=torch.float32) if isinstance(leaf, float) else leaf
        for leaf, is_input in zip(inputs.capture_leaves, inputs.is_input, strict=True)
        if is_input
    )
    # Dim.AUTO rather than Dim.DYNAMIC: a dim that gets fixed is then found below, with its line.
    shapes = tuple(
        _export_spec(leaf, axes)
        for leaf, axes, is_input in zip(
            inputs.capture_leaves, inputs.dynamic, inputs.is_input, strict=True
        )
        if is_input
    )
    watch = ConditionWatch()
    with _torch_private.kernels_replaced(SHAPE_RULES), watch:
        program = _export(flat, leaves, shapes, model, inputs, record)
    graph = graph_from_exported_program(program, ModuleNames.of(model), strip_prefix=True)
    mode = TypeInference.for_graph(graph).mode
    conditions = watch.conditions(mode)
    fixed = _check_dynamic(graph, inputs, conditions)
    notes = check_conditions(conditions, _origins(inputs, mode))
    return Recorded(graph, record, inputs, tuple(notes)), fixed


def _export_spec(leaf: Any, axes: DynamicAxes) -> Any:
    if isinstance(leaf, float):
        return {}
    if isinstance(leaf, int):
        return Dim.AUTO
    return {axis: _export_dim(dim) for axis, dim in axes.items()}


def _export_dim(dim: DynamicDim) -> Any:
    if dim.minimum is None and dim.maximum is None:
        return Dim.AUTO
    return Dim.AUTO(min=dim.minimum, max=dim.maximum)


def _export(
    flat: FlatModel,
    leaves: tuple[Any, ...],
    shapes: tuple[Any, ...],
    model: Any,
    inputs: PreparedInputs,
    record: OutputRecord,
) -> ExportedProgram:
    try:
        return torch.export.export(flat, leaves, dynamic_shapes=(shapes,), strict=False)
    except CaptureError:
        raise
    except Exception as error:
        refusal = error
    args, kwargs = inputs.rebuild(inputs.capture_leaves)
    try:
        # Also tells the structure of the result, which strict mode does not let us note.
        record.note(model(*args, **kwargs))
    except CaptureError:
        raise
    except Exception as error:
        raise model_raises(error, model, inputs) from error
    try:
        return torch.export.export(flat, leaves, dynamic_shapes=(shapes,), strict=True)
    except Exception:
        raise CaptureError(
            format_message(
                f"torch.export refuses the model: {first_line(refusal)}",
                [("try", 'capture="trace", or torch.cond / torch.while_loop for what depends on data')],
            )
        ) from refusal


def first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def model_raises(error: Exception, model: Any, inputs: PreparedInputs) -> CaptureError:
    """The error for a model that fails on its own example inputs."""
    trace = "".join(traceback.format_tb(error.__traceback__))
    at = ("at", place_text(from_stack_trace(trace)))
    if inputs.recorded_sizes != inputs.example_sizes and _runs(model, inputs):
        return DynamicDimError(
            format_message(
                "dynamic dims of size 0 or 1 are recorded with another size, which this model does"
                f" not take: {first_line(error)}",
                [at, ("try", "an example in which every dynamic dim is 2 or more")],
            )
        )
    return CaptureError(
        format_message(f"the model itself fails on these inputs: {first_line(error)}", [at])
    )


def _runs(model: Any, inputs: PreparedInputs) -> bool:
    """Whether the model takes the example as the caller gave it."""
    try:
        model(*inputs.args, **inputs.kwargs)
    except Exception:
        return False
    return True


def _check_dynamic(
    graph: AtenGraph, inputs: PreparedInputs, conditions: Sequence[SizeCondition]
) -> set[tuple[int, int]]:
    """Every dim that was asked for is a symbol, under its name; the optional ones that are not."""
    fixed: set[tuple[int, int]] = set()
    for value, position in zip(graph.inputs, inputs.input_positions, strict=True):
        for axis, dim in inputs.dynamic[position].items():
            size = value.shape[axis] if value.shape else None
            if isinstance(size, sympy.Symbol):
                graph.symbol_names.setdefault(size, dim.name)
            elif isinstance(size, int):
                if dim.required:
                    places = _places_of(size, conditions)
                    raise fixed_dim_error(inputs.names[position], axis, dim, size, places)
                fixed.add((position, axis))
    return fixed


def _origins(inputs: PreparedInputs, mode: Any) -> dict[sympy.Symbol, SymbolOrigin]:
    """What the size symbols of a capture are to the caller."""
    origins = {}
    for symbol, (index, axis) in _torch_private.symbol_places(mode).items():
        position = inputs.input_positions[index]
        dim = inputs.dynamic[position].get(0 if axis is None else axis)
        if dim is not None and axis is not None:
            origins[symbol] = SymbolOrigin(dim.name, dim.required)
        elif axis is None:
            required = dim is not None and dim.required
            origins[symbol] = SymbolOrigin(inputs.names[position], required)
    return origins


def _places_of(size: int, conditions: Sequence[SizeCondition]) -> list[str]:
    """Where the capture took a size for the number it was in the example."""
    return [
        text
        for c in conditions
        if isinstance(c.expression, sympy.Eq) and size in c.expression.args
        if (text := place_text(c.place))
    ]


def fixed_dim_error(
    name: str, axis: int, dim: DynamicDim, size: int, places: list[str]
) -> DynamicDimError:
    return DynamicDimError(
        format_message(
            f"dim {axis} of {name!r} was asked to be dynamic ({dim.name!r}) but the model fixes it to"
            f" {size}",
            [
                ("by", places[:3]),
                ("try", f"take sizes from the tensor (x.shape[{axis}]) instead of numbers there"),
            ],
        )
    )


def inputs_of_exported_program(program: ExportedProgram, names: list[str] | None = None) -> PreparedInputs:
    """The inputs as the program declares them; its fakes stand for the example."""
    args, kwargs = _torch_private.arguments_like(program)
    leaves, structure = tree.flatten((args, kwargs))
    placeholders = [
        getattr(s.arg, "name", "")
        for s in program.graph_signature.input_specs
        if s.kind.name == "USER_INPUT"
    ]
    dynamic: list[DynamicAxes] = []
    for leaf, name in zip(leaves, placeholders, strict=True):
        axes: DynamicAxes = {}
        if isinstance(leaf, torch.Tensor):
            for axis, size in enumerate(leaf.shape):
                if isinstance(_torch_private.dim_of(size), sympy.Basic):
                    axes[axis] = DynamicDim(f"{name}_dim_{axis}")
        dynamic.append(axes)
    return PreparedInputs(
        args, kwargs, structure, tuple(leaves), tuple(leaves), tuple(placeholders), tuple(dynamic), {}
    )
