"""The model recorded by torch.jit.trace."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import sympy
import torch
from torch.overrides import TorchFunctionMode

from sardonyx import _torch_private
from sardonyx.capture.baked_sizes import Difference, depends_on_number, differing_constants
from sardonyx.capture.flat_model import FlatModel, OutputRecord, Recorded
from sardonyx.capture.graph import AtenGraph
from sardonyx.capture.inputs import PreparedInputs
from sardonyx.capture.location import (
    ModuleNames,
    innermost_user_place,
    is_asked_by_torch_nn,
    place_text,
)
from sardonyx.capture.recordable_calls import RecordableCalls
from sardonyx.capture.refusals import fixed_dim_error, model_raises, with_constant_numbers
from sardonyx.capture.size_conditions import SymbolOrigin, check_conditions
from sardonyx.capture.state import state_restored
from sardonyx.capture.torchscript import GraphReader
from sardonyx.errors import CaptureError, DynamicDimError, format_message

_ITERATES = "a Python loop runs over a tensor"
_BAKES = {
    "Python boolean": "a tensor decides a Python branch",
    "Python integer": "a tensor becomes a Python int",
    "Python float": "a tensor becomes a Python float",
    "Python number": "a tensor becomes a Python number",
    "Python index": "a tensor becomes a Python index",
    "NumPy array": "a tensor becomes a NumPy array",
    "Iterating over a tensor": _ITERATES,
    "torch.from_numpy results": "a NumPy array becomes a constant",
    "results are registered as constants": "a tensor made of Python values is a constant",
    "Using len": "len() of a tensor is a constant",
    "Python list": "a tensor becomes a Python list",
}


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


def _captured(model: Any, inputs: PreparedInputs) -> Recorded:
    record = OutputRecord()
    flat = FlatModel(model, inputs, record)
    tensors = tuple(_traced_input(inputs.capture_leaves[p]) for p in inputs.input_positions)
    with _tracer_warnings(flat) as told:
        recording = _trace(flat, tensors, model, inputs)
    if inputs.number_positions:
        constant = _baked_numbers(model, inputs, tensors, recording.graph)
        if constant:
            return with_constant_numbers(capture_by_trace, model, inputs, constant, None)
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
    graph = reader.read(recording.graph, recording.state)
    baked = _without_static_loops(told, graph)
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
    notes = check_conditions(reader.conditions, origins, reader.example_sizes)
    difference = _difference_at_other_sizes(
        model, inputs, tensors, recording.graph, everywhere=bool(baked)
    )
    if difference is not None:
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


def _traced_input(leaf: Any) -> torch.Tensor:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone()
    dtype = torch.get_default_dtype() if isinstance(leaf, float) else torch.int64
    return torch.tensor(leaf, dtype=dtype)


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
) -> _Recording:
    try:
        return _record(flat, tensors)
    except CaptureError:
        raise
    except Exception as error:
        raise model_raises(error, model, inputs) from error


class _Recording(NamedTuple):
    graph: Any
    """Its inputs are those of the model, then the state."""
    state: dict[str, torch.Tensor] | None
    """None where the graph has the module itself as its first input."""


def _record(flat: FlatModel, tensors: tuple[torch.Tensor, ...]) -> _Recording:
    # The model may write its inputs and its state; the reader wants both as they were before.
    copies = tuple(tensor.clone() for tensor in tensors)
    with state_restored(flat.model) as writes:
        flat.modes = (*flat.modes, RecordableCalls(), writes)
        # What TorchScript itself made is no state that could be an input.
        if not any(_holds_script_objects(m) for m in flat.modules()):
            state = {**dict(flat.named_parameters()), **dict(flat.named_buffers())}
            graph = _torch_private.trace_graph(flat, copies, list(state.values()))
            if graph is not None:
                return _Recording(graph, state)
        traced = torch.jit.trace(  # type: ignore[no-untyped-call]
            flat, copies, check_trace=False, strict=False
        )
        return _Recording(traced.inlined_graph, None)


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
    *,
    everywhere: bool,
) -> Difference | None:
    """What a trace with other dynamic sizes does otherwise: it was baked from a size. Not every
    such thing comes with a warning of the tracer."""
    dynamic = [inputs.dynamic[position] for position in inputs.input_positions]
    with _tracer_warnings():
        return differing_constants(
            _tracer(model, inputs), graph, tensors, dynamic, everywhere=everywhere
        )


def _baked_size_error(
    difference: Difference, reader: GraphReader, baked: list[str]
) -> DynamicDimError:
    places = (reader.location(node) for node in difference.nodes)
    place = next((p for p in places if p.file), None)
    return DynamicDimError(
        format_message(
            f"tracing bakes a size that was asked to be dynamic: {difference.text}",
            [
                ("at", place.describe() if place else ""),
                ("by", baked),
                ("try", 'capture="export", or sizes as x.shape[i] without int(), len() or range()'),
            ],
        )
    )


def _baked_numbers(
    model: Any, inputs: PreparedInputs, tensors: tuple[torch.Tensor, ...], graph: Any
) -> list[int]:
    """Positions of the Python numbers whose value decides what is traced."""
    with _tracer_warnings():
        return [
            position
            for index, position in enumerate(inputs.input_positions)
            if position in inputs.number_positions
            and depends_on_number(_tracer(model, inputs), graph, tensors, index)
        ]


def _tracer(model: Any, inputs: PreparedInputs) -> Callable[[tuple[torch.Tensor, ...]], Any]:
    """Gives the TorchScript graph at other inputs."""

    def trace(tensors: tuple[torch.Tensor, ...]) -> Any:
        flat = FlatModel(model, inputs, OutputRecord())
        return _record(flat, tensors).graph

    return trace


class _Watch(TorchFunctionMode):
    """Tells of tensors that become Python indices, as in range(n), of which the tracer is silent;
    knows tensors made of Python values alone, which the tracer warns of without need: where such a
    value was read off a tensor, it warned then."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell
        self.makes_literal = False

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func == torch.Tensor.__index__:
            self._tell(_BAKES["Python index"])
        self.makes_literal = func in _OF_PYTHON_VALUES and not _holds_tensor(args)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.makes_literal = False


_OF_PYTHON_VALUES = (torch.tensor, torch.as_tensor, torch.asarray)


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_tensor, value))
    return isinstance(value, torch.Tensor)


def _without_static_loops(baked: Iterable[str], graph: AtenGraph) -> list[str]:
    """What is baked but for loops over dims of a fixed size, which always run as they ran."""
    iterated: dict[str, bool] = {}
    for node in graph.nodes:
        if node.op is torch.ops.aten.unbind.int:
            tensor = node.arguments["self"]
            static = isinstance(tensor.shape[node.arguments["dim"]], int)
            at = node.location
            line = _baked_line(_ITERATES, place_text((at.file, at.line, at.text)))
            iterated[line] = iterated.get(line, True) and static
    return [line for line in baked if not iterated.get(line, False)]


def _baked_line(what: str, place: str) -> str:
    return f"tracing bakes a value: {what} at {place}"


@contextlib.contextmanager
def _tracer_warnings(flat: FlatModel | None = None) -> Iterator[dict[str, None]]:
    """One line for each place where tracing turns a computed value into a constant; what the tracer
    does not tell is watched for in `flat`."""
    lines: dict[str, None] = {}

    def note(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, torch.jit.TracerWarning):  # type: ignore[attr-defined]
            return
        text = str(message)
        if watch.makes_literal and "results are registered as constants" in text:
            return
        add(next((short for key, short in _BAKES.items() if key in text), text.splitlines()[0]))

    def add(what: str) -> None:
        frame = sys._getframe(1)
        if is_asked_by_torch_nn(frame):
            return
        place = place_text(innermost_user_place(frame))
        lines[_baked_line(what, place)] = None

    watch = _Watch(add)
    if flat is not None:
        flat.modes = (*flat.modes, watch)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield lines
