"""The model recorded by torch.export: non-strict, then strict."""

from __future__ import annotations

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
from sardonyx.capture.location import ModuleNames
from sardonyx.errors import CaptureError, DynamicDimError, format_message


def capture_by_export(model: Any, inputs: PreparedInputs) -> Recorded:
    record = OutputRecord()
    flat = FlatModel(model, inputs, record)
    leaves = tuple(
        torch.tensor(leaf) if isinstance(leaf, float) else leaf
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
    program = _export(flat, leaves, shapes, model, inputs, record)
    graph = graph_from_exported_program(program, ModuleNames.of(model), strip_prefix=True)
    _check_dynamic(graph, inputs)
    return Recorded(graph, record)


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
        raise model_raises(error) from error
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


def model_raises(error: Exception) -> CaptureError:
    """The error for a model that fails on its own example inputs."""
    import traceback

    from sardonyx.capture.location import from_stack_trace

    trace = "".join(traceback.format_tb(error.__traceback__))
    file, line, text = from_stack_trace(trace)
    return CaptureError(
        format_message(
            f"the model itself fails on these inputs: {first_line(error)}",
            [("at", f"{file}:{line}   {text}" if file else "")],
        )
    )


def _check_dynamic(graph: AtenGraph, inputs: PreparedInputs) -> None:
    """Every dim that was asked for is a symbol, under its name."""
    positions = [i for i, is_input in enumerate(inputs.is_input) if is_input]
    for value, position in zip(graph.inputs, positions, strict=True):
        name = inputs.names[position]
        for axis, dim in inputs.dynamic[position].items():
            size = value.shape[axis] if value.shape else None
            if isinstance(size, sympy.Symbol):
                graph.symbol_names.setdefault(size, dim.name)
            elif isinstance(size, int) and dim.required:
                raise fixed_dim_error(name, axis, dim, size, _places_of(graph, size))


def _places_of(graph: AtenGraph, size: int) -> list[str]:
    """Where the capture took a size for the number it was in the example."""
    mode = TypeInference.for_graph(graph).mode
    return [
        f"{place}   ({condition})"
        for condition, place in _torch_private.guard_places(mode)
        if isinstance(condition, sympy.Eq) and size in condition.args
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
