"""The model recorded by PyTorch's tracer, as a TorchScript graph."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.capture.baked_sizes import Difference, depends_on_number, differing_constants
from sardonyx.capture.baked_values import BakedValue, BakedValues, baked_values
from sardonyx.capture.flat_model import (
    FlatModel,
    OutputRecord,
    RandomNumbersWatch,
    Recorded,
    is_graph_output,
    modes_of_captures,
)
from sardonyx.capture.freed_memory import FreedMemory
from sardonyx.capture.inputs import PreparedInputs
from sardonyx.capture.location import ModuleNames, innermost_user_place, place_text
from sardonyx.capture.purity import RandomStates
from sardonyx.capture.recordable_calls import RecordableCalls
from sardonyx.capture.refusals import (
    fixed_dim_error,
    model_raises,
    place_of,
    with_constant_numbers,
)
from sardonyx.capture.size_conditions import SymbolOrigin, check_conditions
from sardonyx.capture.squeezed_ranks import SqueezedRanks
from sardonyx.capture.state import state_restored, state_tensors
from sardonyx.capture.torchscript.reader import GraphReader
from sardonyx.capture.traced_sizes import TracedSizes
from sardonyx.capture.unrun_calls import OpenedCalls, UnrunCalls, ValuesMissingError
from sardonyx.capture.untold_views import UntoldViews
from sardonyx.capture.watched_calls import ChangingMode, WatchedCalls, WatchingMode
from sardonyx.errors import CaptureError, DynamicDimError, format_message


def capture_by_trace(model: Any, inputs: PreparedInputs) -> Recorded:
    try:
        return _captured(model, inputs)
    except DynamicDimError:
        raise
    except CaptureError as error:
        if not inputs.number_positions:
            raise
        return with_constant_numbers(
            capture_by_trace, model, inputs, inputs.number_positions, error
        )


def _captured(
    model: Any,
    inputs: PreparedInputs,
    *,
    follows_fixed_sizes: bool = False,
    runs_all: bool = False,
) -> Recorded:
    """`follows_fixed_sizes`: also where no size is dynamic. `runs_all`: also costly calls."""
    record = OutputRecord()
    flat = FlatModel(model, inputs, record)
    tensors = tuple(traced_input(inputs.capture_leaves[p]) for p in inputs.input_positions)
    is_fixed = not flat.has_dynamic_dims and not inputs.number_positions
    sizes = TracedSizes(follows_all=follows_fixed_sizes or not is_fixed)
    random_states = RandomStates()
    unrun = None if runs_all else UnrunCalls(record, _held_by(model))
    with baked_values() as watch:
        recording = _trace(flat, tensors, model, inputs, watch, sizes, unrun)
    if recording is None:
        random_states.restore()
        is_run = unrun is None or not unrun.lacks_values
        return _captured(
            model, inputs, follows_fixed_sizes=follows_fixed_sizes or is_run, runs_all=not is_run
        )
    if inputs.number_positions:
        constant = _baked_numbers(model, inputs, tensors, recording.graph)
        if constant:
            return with_constant_numbers(capture_by_trace, model, inputs, constant, None)
    reader = GraphReader(flat, ModuleNames.of(model))
    for tensor, position in zip(tensors, inputs.input_positions, strict=True):
        axes = inputs.dynamic[position] if isinstance(inputs.leaves[position], torch.Tensor) else {}
        reader.add_input(inputs.names[position], tensor, {a: d.name for a, d in axes.items()})
    # Read off now: a symbol that gets fixed is no longer seen in the shape of its input.
    symbols = symbols_of_dims(reader, inputs)
    origins = {
        symbol: SymbolOrigin(inputs.dynamic[p][a].name, inputs.dynamic[p][a].required)
        for (p, a), symbol in symbols.items()
    }
    graph = reader.read(recording.graph, recording.state)
    del graph.outputs[sum(map(is_graph_output, record.leaves)) :]
    watch.answers_unread(sizes.unread_answers(record.leaves))
    baked = watch.found_in(graph)
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
    notes = [
        *reader.notes,
        *check_conditions(reader.conditions, origins, reader.example_sizes),
    ]
    difference = _difference_at_other_sizes(
        model, inputs, tensors, recording.graph, bool(baked), sizes.compared if baked else ()
    )
    if difference is not None and difference.is_beyond:
        notes.append(f"the recording does not hold for all sizes: {difference.text}")
    elif difference is not None:
        optional = {
            (position, axis)
            for position, axis in symbols
            if not inputs.dynamic[position][axis].required
        }
        if optional:
            return capture_by_trace(model, inputs.without_dynamic(optional))
        if not difference.holds_where:
            raise _baked_size_error(difference, reader, baked)
        notes.append(f"the recording holds where {difference.holds_where}, as in the example")
    return Recorded(graph, record, inputs, tuple(notes), tuple(baked))


def _held_by(model: Any) -> list[torch.Tensor]:
    return [tensor for _, tensor in state_tensors(model)]


def traced_input(leaf: Any) -> torch.Tensor:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone()
    dtype = torch.get_default_dtype() if isinstance(leaf, float) else torch.int64
    return torch.tensor(leaf, dtype=dtype)


def symbols_of_dims(
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
    flat: FlatModel,
    tensors: tuple[torch.Tensor, ...],
    model: Any,
    inputs: PreparedInputs,
    watch: BakedValues,
    sizes: TracedSizes,
    unrun: UnrunCalls | None,
) -> _Recording | None:
    """None where the model has to be recorded in another way: with values, which it looks at, or
    with sizes that are followed, which code that only runs under a tracer takes for tensors, as
    some of F.interpolate."""
    try:
        return _record(flat, tensors, sizes, watch, unrun)
    except Exception as error:
        if sizes.gave_numbers:
            return None
        if isinstance(error, CaptureError):
            raise
        unknown = _UNKNOWN_CALL.search(str(error))
        if unknown is not None:
            raise _unknown_call(unknown["op"], unknown["types"].strip()) from error
        if "unsupported input list type" in str(error):
            raise CaptureError(
                format_message(
                    "a call takes a list in which tensors may be missing, as one for a node of a"
                    " name that the model gives does, which tracing cannot record",
                    [("at", place_of(error)), ("try", 'capture="export"')],
                )
            ) from error
        raise model_raises(error, model, inputs) from error


_UNKNOWN_CALL = re.compile(
    r"We don't have an op for (?P<op>\S+) but it isn't a special case\."
    r"(?:\s*Argument types: (?P<types>[^\n]*?),?\s*(?:\n|$))?"
)


def _unknown_call(op: str, types: str | None) -> CaptureError:
    return CaptureError(
        format_message(
            f"a call cannot be traced: {op} with arguments of the types {types or 'given'}",
            [("try", 'capture="export", or a tensor where the call has a Python value')],
        )
    )


class _Recording(NamedTuple):
    graph: Any
    """Its inputs are those of the model, then the state."""
    state: dict[str, torch.Tensor] | None
    """None where the graph has the module itself as its first input."""


def _record(
    flat: FlatModel,
    tensors: tuple[torch.Tensor, ...],
    sizes: TracedSizes,
    watch: BakedValues | None = None,
    unrun: UnrunCalls | None = None,
) -> _Recording | None:
    """None where the recording does not hold without values that are missing."""
    # What TorchScript itself made is no state that could be an input.
    if not any(_holds_script_objects(m) for m in flat.modules()):
        state = {**dict(flat.named_parameters()), **dict(flat.named_buffers())}
        try:
            with _run_of(flat, tensors, sizes, watch, unrun) as copies:
                if unrun is not None:
                    unrun.inputs = (*copies, *state.values())
                graph = _torch_private.trace_graph(flat, copies, list(state.values()))
            if unrun is not None and unrun.lacks_values:
                has_read_data = watch is not None and watch.has_read_data
                if graph is None or not unrun.finish(graph) or has_read_data:
                    return None
        except (Exception, ValuesMissingError):
            if unrun is None or not unrun.lacks_values:
                raise
            return None
        if graph is not None:
            return _Recording(graph, state)
    with _run_of(flat, tensors, sizes, watch) as copies:
        traced = torch.jit.trace(  # type: ignore[no-untyped-call]
            flat, copies, check_trace=False, strict=False
        )
    return _Recording(traced.inlined_graph, None)


@contextlib.contextmanager
def _run_of(
    flat: FlatModel,
    tensors: tuple[torch.Tensor, ...],
    sizes: TracedSizes,
    watch: BakedValues | None,
    unrun: UnrunCalls | None = None,
) -> Iterator[tuple[torch.Tensor, ...]]:
    """Copies to run the model on, once. It may write its inputs and its state; the reader, and
    another run, want both as they were before."""
    copies = tuple(tensor.clone() for tensor in tensors)
    watching: list[ChangingMode | WatchingMode] = [*modes_of_captures()]
    if unrun is not None:
        watching = [unrun, unrun.watch, OpenedCalls(), *watching]
    if watch is not None:
        watch.know_inputs(copies)
        watching.append(watch)
    recorded = contextlib.nullcontext() if watch is None else watch.recorded_to_the_end()
    with state_restored(flat.model) as writes:
        views = UntoldViews()
        watching += [RecordableCalls(), sizes, writes, views, FreedMemory()]
        flat.kept = views.found
        if unrun is not None:
            unrun.when_values_are_given = writes.know_again
        if flat.has_dynamic_dims:
            watching.append(SqueezedRanks(views.found))
        flat.modes = (
            contextlib.nullcontext() if unrun is None else unrun.around_the_model(views.found),
            recorded,
            _torch_private.gradients_refused(_gradient_error),
            RandomNumbersWatch(flat.record),
            sizes.followed_by_python(flat.model),
            WatchedCalls(watching),
        )
        try:
            yield copies
        finally:
            flat.modes, flat.kept = (), ()


def _gradient_error() -> CaptureError:
    return CaptureError(
        format_message(
            "torch.func.grad, and what is made of it, cannot be traced",
            [
                ("at", place_text(innermost_user_place(sys._getframe(1)))),
                ("try", "torch.autograd.grad of an input that requires gradients"),
            ],
        )
    )


def _holds_script_objects(module: torch.nn.Module) -> bool:
    """Whether it is a script module, or has the packed weights of a quantized layer."""
    return isinstance(module, torch.jit.ScriptModule) or any(
        isinstance(attribute, torch.ScriptObject) for attribute in vars(module).values()
    )


def _difference_at_other_sizes(
    model: Any,
    inputs: PreparedInputs,
    tensors: tuple[torch.Tensor, ...],
    graph: Any,
    everywhere: bool,
    compared: Collection[float],
) -> Difference | None:
    """What a trace with other dynamic sizes does otherwise: it was baked from a size. Not every
    such thing comes with a warning of the tracer."""
    dynamic = [inputs.dynamic[position] for position in inputs.input_positions]
    with baked_values():
        return differing_constants(
            _tracer(model, inputs),
            graph,
            tensors,
            dynamic,
            everywhere=everywhere,
            compared=compared,
        )


def _baked_size_error(
    difference: Difference, reader: GraphReader, baked: list[BakedValue]
) -> DynamicDimError:
    places = (reader.location(node) for node in difference.nodes)
    place = next((p for p in places if p.file), None)
    return DynamicDimError(
        format_message(
            f"tracing bakes a size that was asked to be dynamic: {difference.text}",
            [
                ("at", place.describe() if place else ""),
                ("by", [str(value) for value in baked]),
                (
                    "try",
                    [
                        'capture="export", or sizes as x.shape[i] without int(), len() or range()',
                        'or capture="script", where data decides what is computed',
                    ],
                ),
            ],
        )
    )


def _baked_numbers(
    model: Any, inputs: PreparedInputs, tensors: tuple[torch.Tensor, ...], graph: Any
) -> list[int]:
    """Positions of the Python numbers whose value decides what is traced."""
    with baked_values():
        return [
            position
            for index, position in enumerate(inputs.input_positions)
            if position in inputs.number_positions
            and depends_on_number(_tracer(model, inputs), graph, tensors, index)
        ]


def _tracer(model: Any, inputs: PreparedInputs) -> Callable[[tuple[torch.Tensor, ...]], Any]:
    """Gives the TorchScript graph at other inputs."""

    def trace(tensors: tuple[torch.Tensor, ...]) -> Any:
        for runs_all in (False, True):
            record = OutputRecord()
            unrun = None if runs_all else UnrunCalls(record, _held_by(model))
            flat = FlatModel(model, inputs, record)
            recording = _record(flat, tensors, TracedSizes(follows_all=True), unrun=unrun)
            if recording is not None:
                return recording.graph
        raise AssertionError("a recording that runs all calls has all values")

    return trace
