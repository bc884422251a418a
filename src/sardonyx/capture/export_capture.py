"""The model recorded by torch.export: non-strict, then strict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch.export import Dim, ExportedProgram

from sardonyx import _torch_private
from sardonyx.capture.autograd_functions import whole_where_compiled
from sardonyx.capture.dynamic import DynamicAxes, DynamicDim
from sardonyx.capture.exportable_calls import ExportableCalls, MathOfSizes
from sardonyx.capture.exported import graph_from_exported_program
from sardonyx.capture.flat_model import (
    FlatModel,
    OutputRecord,
    RandomNumbersWatch,
    Recorded,
    modes_of_captures,
)
from sardonyx.capture.graph import AtenGraph
from sardonyx.capture.identity_checks import KindsOfSizes
from sardonyx.capture.infer import TypeInference
from sardonyx.capture.inputs import PreparedInputs
from sardonyx.capture.location import ModuleNames, place_text
from sardonyx.capture.packed_sequences import (
    PackedSequences,
    batches_unchecked,
    hint_for_lengths,
)
from sardonyx.capture.refusals import (
    fixed_dim_error,
    model_raises,
    place_of,
    result_on_copies,
    with_constant_numbers,
)
from sardonyx.capture.shapes.rules import SHAPE_RULES
from sardonyx.capture.size_conditions import (
    ConditionWatch,
    SizeCondition,
    SymbolOrigin,
    check_conditions,
    in_callers_names,
    notes_on_small_sizes,
    notes_on_texts,
)
from sardonyx.capture.state import state_restored
from sardonyx.capture.watched_calls import ChangingMode, WatchedCalls, WatchingMode
from sardonyx.errors import CaptureError, DynamicDimError, first_line, format_message


def capture_by_export(model: Any, inputs: PreparedInputs) -> Recorded:
    try:
        recorded, fixed = _captured(model, inputs)
    except DynamicDimError:
        raise
    except CaptureError as error:
        if not inputs.number_positions:
            raise
        return with_constant_numbers(
            capture_by_export, model, inputs, inputs.number_positions, error
        )
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
    given = [(inputs.capture_leaves[p], inputs.dynamic[p]) for p in inputs.input_positions]
    leaves = tuple(_exported_input(leaf) for leaf, _ in given)
    # Dim.AUTO rather than Dim.DYNAMIC: a dim that gets fixed is then found below, with its line.
    shapes = (tuple(_export_spec(leaf, axes) for leaf, axes in given),) if given else None
    watch = ConditionWatch()
    modes: list[ChangingMode | WatchingMode] = [*modes_of_captures(), PackedSequences()]
    modes += [ExportableCalls(), watch]
    with (
        _torch_private.kernels_replaced(SHAPE_RULES),
        _torch_private.lines_of_functions(),
        _torch_private.export_without_prints(),
        _torch_private.answers_watched(watch.note_answer),
        _torch_private.texts_watched(watch.note_text),
        _torch_private.float_arithmetic_in_order(),
        _torch_private.associative_scans_recorded(),
        _torch_private.scans_with_inputs_of_their_own(),
        _torch_private.long_sizes_not_kept(),
        _torch_private.sizes_that_may_be_zero(),
        _torch_private.weightless_tensors_adopted(),
        batches_unchecked(),
    ):
        try:
            program = _export(flat, leaves, shapes, model, inputs, record, modes)
        except _Refused as refused:
            raise _refusal(refused.by, inputs, watch.mode) from refused.by
    graph = graph_from_exported_program(program, ModuleNames.of(model), strip_prefix=True)
    _refuse_quantized(graph)
    constant = _fixed_numbers(graph, inputs)
    if constant:
        return with_constant_numbers(capture_by_export, model, inputs, constant, None), set()
    mode = TypeInference.for_graph(graph).mode
    conditions = watch.conditions(mode)
    fixed = _check_dynamic(graph, inputs, conditions, mode)
    origins, sizes = _origins(inputs, mode), _torch_private.example_sizes(mode)
    notes = check_conditions(conditions, origins, sizes)
    notes += notes_on_small_sizes(watch.small_sizes_aside, origins, sizes)
    notes += notes_on_texts(watch.texts, origins)
    return Recorded(graph, record, inputs, tuple(dict.fromkeys(notes))), fixed


def _exported_input(leaf: Any) -> Any:
    """A tensor of its own: torch.export makes one input of tensors that are the same object."""
    if isinstance(leaf, float):
        return torch.tensor(leaf, dtype=torch.get_default_dtype())
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


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
    shapes: tuple[Any, ...] | None,
    model: Any,
    inputs: PreparedInputs,
    record: OutputRecord,
    modes: Sequence[ChangingMode | WatchingMode],
) -> ExportedProgram:
    try:
        # Tensors that are no parameters or buffers are the real ones there, and so are writes.
        with state_restored(model) as writes, whole_where_compiled():
            kinds = KindsOfSizes()
            watched = WatchedCalls((*modes, writes, kinds))
            flat.modes = (
                RandomNumbersWatch(record),
                MathOfSizes(),
                kinds.answered(flat.model),
                watched,
            )
            return torch.export.export(flat, leaves, dynamic_shapes=shapes, strict=False)
    except CaptureError:
        raise
    except Exception as error:
        refusal = error
    try:
        # Also tells the structure of the result, which strict mode does not let us note.
        result, assigned = result_on_copies(model, inputs, inputs.capture_leaves)
        record.note(result)
    except CaptureError:
        raise
    except Exception as error:
        raise model_raises(error, model, inputs) from error
    flat.modes = ()  # strict mode compiles the model's code, and cannot be watched so
    _torch_private.import_compiler()
    try:
        with whole_where_compiled(only_met=True), _torch_private.transforms_left_in_the_end():
            program = torch.export.export(flat, leaves, dynamic_shapes=shapes, strict=True)
    except Exception:
        raise _Refused(refusal) from refusal
    # Strict mode records the writes of buffers only.
    record.unkept += assigned
    return program


class _Refused(Exception):
    """torch.export does not take the model."""

    def __init__(self, by: Exception) -> None:
        super().__init__(by)
        self.by = by


_DECIDED_BY_DATA = re.compile(
    r"expression .* \(unhinted: (?P<condition>.*?)\)\.?\s+\(Size-like symbols: .*"
)


def _refusal(error: Exception, inputs: PreparedInputs, mode: Any) -> CaptureError:
    said = _DECIDED_BY_DATA.sub(r"expression \g<condition>", first_line(error))
    origins = {} if mode is None else _origins(inputs, mode)
    said = in_callers_names(said, {symbol: o.name for symbol, o in origins.items()})
    hint = hint_for_lengths([place_of(error)])
    return CaptureError(
        format_message(
            f"torch.export refuses the model: {said}",
            [
                ("at", place_of(error)),
                (
                    "try",
                    [
                        'capture="trace", or torch.cond / torch.while_loop where data decides',
                        hint and f"or {hint}",
                    ],
                ),
            ],
        )
    )


def _refuse_quantized(graph: AtenGraph) -> None:
    """torch.export takes what these give for floating-point numbers; a trace knows better."""
    for node in graph.nodes:
        if node.name.startswith(("aten::quantize_per_", "quantized::")):
            raise CaptureError(
                format_message(
                    f"torch.export does not record quantized tensors, which {node.name} gives",
                    [("at", node.location.describe()), ("try", 'capture="trace"')],
                )
            )


def _fixed_numbers(graph: AtenGraph, inputs: PreparedInputs) -> list[int]:
    """Positions of integers that the model turned into numbers while it was recorded."""
    free = {id(source.value): symbol for symbol, source in graph.symbols.items()}
    fixed = []
    for value, position in zip(graph.inputs, inputs.input_positions, strict=True):
        if isinstance(inputs.leaves[position], int):
            if id(value) in free:
                graph.symbol_names.setdefault(free[id(value)], inputs.names[position])
            else:
                fixed.append(position)
    return fixed


def _check_dynamic(
    graph: AtenGraph, inputs: PreparedInputs, conditions: Sequence[SizeCondition], mode: Any
) -> set[tuple[int, int]]:
    """Every dim that was asked for is a symbol, under its name; the optional ones that are not."""
    fixed: set[tuple[int, int]] = set()
    symbols = {place: symbol for symbol, place in _torch_private.symbol_places(mode).items()}
    for index, (value, position) in enumerate(
        zip(graph.inputs, inputs.input_positions, strict=True)
    ):
        for axis, dim in inputs.dynamic[position].items():
            size = value.shape[axis] if value.shape else None
            if isinstance(size, sympy.Symbol):
                graph.symbol_names.setdefault(size, dim.name)
            elif isinstance(size, int):
                if dim.required:
                    places = _places_of(symbols.get((index, axis)), conditions)
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
            origins[symbol] = SymbolOrigin(dim.name, dim.required, dim.minimum or 0)
        elif axis is None:
            required = dim is not None and dim.required
            origins[symbol] = SymbolOrigin(inputs.names[position], required)
    return origins


def _places_of(symbol: Any, conditions: Sequence[SizeCondition]) -> list[str]:
    """Where the capture took a size for the number it was in the example: the plainest first."""
    equations = [
        c
        for c in conditions
        if isinstance(c.expression, sympy.Eq) and symbol in c.expression.free_symbols
    ]
    equations.sort(key=lambda c: symbol not in c.expression.args)
    return list(dict.fromkeys(text for c in equations if (text := place_text(c.place))))
