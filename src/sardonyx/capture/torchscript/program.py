"""A scripted model: its program is read, branches and loops and all, without being run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Argument, AtenGraph, Mutation, SourceLocation, Value
from sardonyx.aten.location import ModuleNames
from sardonyx.aten.module_tree import modules_of
from sardonyx.aten.pytree import Grid, QuantizedParts
from sardonyx.capture.capture_errors import fixed_dim_error
from sardonyx.capture.flat_model import PREFIX, FlatModel, OutputRecord, Recorded, is_graph_output
from sardonyx.capture.inputs.binding import PreparedInputs
from sardonyx.capture.quantized.tensor import QuantizedTensor
from sardonyx.capture.symbolic_shapes.guards import SymbolOrigin, check_conditions
from sardonyx.capture.torchscript.errors import ScriptRefusal, runtime_string
from sardonyx.capture.torchscript.interpreter.attributes import ModuleAt
from sardonyx.capture.torchscript.interpreter.reader import GraphReader
from sardonyx.capture.torchscript.types.values import (
    NUMBERS,
    ComputedNumber,
    DynamicItems,
    DynamicRows,
    ListItems,
    MaybeNone,
    RuntimeString,
    ScriptDict,
    ScriptList,
    number_dtype,
)
from sardonyx.errors import CaptureError, InvalidOptionError


def capture_by_script(model: Any, inputs: PreparedInputs) -> Recorded:
    program = compiled_script(model)
    record = OutputRecord()
    flat = FlatModel(program, inputs, record)
    reader = GraphReader(flat, ModuleNames.of(model))
    leaves: list[Any] = list(inputs.leaves)
    for position in inputs.input_positions:
        leaf = inputs.leaves[position]
        tensor = _as_tensor(inputs.capture_leaves[position])
        axes = inputs.dynamic[position] if isinstance(leaf, torch.Tensor) else {}
        reader.add_input(inputs.names[position], tensor, {a: d.name for a, d in axes.items()})
        leaves[position] = reader.graph.inputs[-1]
    symbols = {
        (position, axis): value.shape[axis]
        for value, position in zip(reader.graph.inputs, inputs.input_positions, strict=True)
        if value.shape
        for axis in inputs.dynamic[position]
    }
    origins = {
        symbol: SymbolOrigin(inputs.dynamic[p][a].name, inputs.dynamic[p][a].required)
        for (p, a), symbol in symbols.items()
    }
    for position in inputs.number_positions:
        is_float = isinstance(inputs.leaves[position], float)
        dtype = torch.float64 if is_float else torch.int64
        leaves[position] = reader.numbers.read(leaves[position], dtype)
    arguments = _arguments(program, reader, *inputs.rebuild(leaves))
    result = reader.read_program(program.inlined_graph, arguments)
    structured = _Results(reader)
    try:
        (output,) = program.inlined_graph.outputs()
        record.note(_with_names(structured.of(result), output.type()))
    except ScriptRefusal as refusal:
        raise refusal.located(_place_of_result(reader, program.inlined_graph)) from refusal
    record.lists = frozenset(structured.lists)
    reader.graph.outputs = [
        structured.outputs.get(id(leaf), leaf) for leaf in record.leaves if is_graph_output(leaf)
    ]
    for (position, axis), symbol in symbols.items():
        if symbol in reader.fixed:
            size, place = reader.fixed[symbol]
            dim = inputs.dynamic[position][axis]
            if dim.required:
                raise fixed_dim_error(inputs.names[position], axis, dim, size, [place.describe()])
            return capture_by_script(model, inputs.without_dynamic({(position, axis)}))
    guards = check_conditions(reader.conditions, origins, reader.example_sizes)
    notes = (*guards, *reader.notes, *_attributes_set(reader))
    return Recorded(reader.graph, record, inputs, notes)


def read_call(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], graph: AtenGraph, mode: Any
) -> Any:
    """A call of a scripted function by a recorded model, written into the graph of the recording.
    Returns values of the graph and numbers, in tuples and lists."""
    reader = GraphReader(torch.nn.Module(), ModuleNames(function.name, {}), graph, mode)
    bound = _arguments(function, reader, args, kwargs)
    return _plain_result(reader.read_program(function.inlined_graph, bound))


def _plain_result(result: Argument) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_plain_result, result))
    if isinstance(result, ScriptList) and isinstance(result.state, tuple):
        return list(map(_plain_result, result.state))
    if isinstance(result, ComputedNumber):
        return result.value
    if isinstance(result, (Value, sympy.Basic, bool, int, float, str, type(None))):
        return result
    raise CaptureError(
        "a scripted function returns more than a recording can take: tensors, numbers, and tuples"
        " and lists of them whose length is known"
    )


def _with_names(result: Any, kind: Any) -> Any:
    """A NamedTuple that the program returns, of the class that PyTorch makes for it."""
    if isinstance(result, (tuple, list, dict)) and kind.kind() == "OptionalType":
        return _with_names(result, kind.getElementType())
    if isinstance(result, dict):
        return {key: _with_names(item, kind.getValueType()) for key, item in result.items()}
    if isinstance(result, list):
        return [_with_names(item, kind.getElementType()) for item in result]
    if not isinstance(result, tuple):
        return result
    items = tuple(map(_with_names, result, kind.elements()))
    return _torch_private.tuple_of_type(kind, items)


def _place_of_result(reader: GraphReader, graph: Any) -> SourceLocation:
    """The location of the node that makes the result."""
    (output,) = graph.outputs()
    places = (reader.location(n) for n in (output.node(), *reversed(list(graph.nodes()))))
    return next((place for place in places if place.file), SourceLocation())


def compiled_script(model: Any) -> Any:
    if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        return model
    modules = modules_of(model)
    before = [set(vars(module)) for module in modules]
    try:
        for module in modules:  # @torch.autocast, without which PyTorch would compile
            if (why := getattr(type(module).forward, "__script_unsupported", "")) != "":
                raise TypeError(why)
        program = torch.jit.script(model)
        if not _torch_private.is_scripted(getattr(program, "forward", program)):
            raise TypeError(
                f"{type(model).__qualname__} is no function, and no module with forward"
            )
        return program
    except Exception as error:
        raise CaptureError(
            "torch.jit.script does not compile the model",
            [("reason", str(error).strip().splitlines()), ("try", 'capture="export"')],
        ) from error
    finally:
        for module, names in zip(modules, before, strict=True):
            for name in vars(module).keys() - names:  # PyTorch keeps overloads of methods there
                del vars(module)[name]


def _arguments(
    program: Any, reader: GraphReader, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Argument]:
    """By the names of the parameters; the module itself is one."""
    bound: dict[str, Argument] = {}
    given = list(args)
    is_module = isinstance(program, torch.jit.ScriptModule)
    for parameter in (program.forward if is_module else program).schema.arguments:
        name = parameter.name
        if is_module and not bound:
            bound[name] = ModuleAt((PREFIX,))
            continue
        if not given and name not in kwargs and not parameter.has_default_value():
            raise InvalidOptionError(f"the scripted model takes {name!r}, which was not given")
        argument = given.pop(0) if given else kwargs.get(name, parameter.default_value)
        bound[name] = _of_type(reader, reader.wrapped(argument), parameter)
    return bound


def _of_type(reader: GraphReader, argument: Argument, parameter: Any) -> Argument:
    """Converted as PyTorch does: a tensor to a number, and an int to a float."""
    kind = parameter.type
    if kind.kind() == "OptionalType":
        kind = kind.getElementType()
    wanted = NUMBERS.get(kind.kind())
    if wanted is None:
        return argument
    if isinstance(argument, Value):
        return reader.numbers.read(argument, wanted)
    if isinstance(argument, ComputedNumber) and argument.value.dtype != wanted:
        if wanted != torch.float64:
            raise InvalidOptionError(
                f"{parameter.name!r} is an {kind} of the scripted model: give one, not a float"
            )
        return ComputedNumber(reader.numbers.as_tensor(argument, wanted))
    return argument


class _Results:
    """The result of the program in Python's structures, with a stand-in for each tensor."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self.outputs: dict[int, Argument] = {}
        self.lists: list[int] = []
        """The stand-ins of whole lists, by id."""
        self._alive: list[torch.Tensor] = []

    def of(self, result: Argument) -> Any:
        if isinstance(result, ScriptList):
            return self._list(result.state)
        if isinstance(result, RuntimeString):
            raise runtime_string()
        if isinstance(result, ScriptDict):
            return {key: self.of(item) for key, item in result.state.items()}
        if isinstance(result, tuple):
            return tuple(self.of(item) for item in result)
        if isinstance(result, (ComputedNumber, sympy.Basic)):
            return self._stand_in(self._as_number_output(result))
        if isinstance(result, QuantizedTensor):
            scale: Any = result.scale
            grid = Grid(result.dtype, scale, result.zero_point, result.axis)
            return QuantizedParts(self._stand_in(result.integers), grid)
        if isinstance(result, MaybeNone):
            raise ScriptRefusal(
                "the model returns None for some inputs and a tensor for others, and an ONNX file"
                " always returns all of its outputs",
                "return a tensor in both cases, and a flag",
            )
        return self._stand_in(result) if isinstance(result, Value) else result

    def _list(self, items: ListItems) -> Any:
        known = self._reader.lists.known_items(items)
        if known is not None:
            return [self.of(item) for item in known]
        if isinstance(items, DynamicRows):
            raise ScriptRefusal(
                "the model returns a list of tuples whose length is computed at run time, which"
                " ONNX does not have",
                "return a list for each element of the tuples",
            )
        assert isinstance(items, DynamicItems)
        content = items.content
        if not items.of_numbers:
            content = self._reader.lists.as_sequence(items)
        elif content.dtype == torch.float64:
            dtype = torch.get_default_dtype()
            content = self._reader.call(torch.ops.aten._to_copy.default, content, dtype=dtype)
        made = self._stand_in(content)
        self.lists.append(id(made))
        return made

    def _stand_in(self, output: Argument) -> torch.Tensor:
        made = torch.empty(0)
        self._alive.append(made)
        self.outputs[id(made)] = output
        return made

    def _as_number_output(self, number: Argument) -> Value:
        is_float = number_dtype(number) == torch.float64
        dtype = torch.get_default_dtype() if is_float else None
        return self._reader.numbers.as_tensor(number, dtype)


def _attributes_set(reader: GraphReader) -> list[str]:
    """Buffers that the program sets are outputs; a note names each other attribute."""
    notes = []
    for name, before, after in reader.attributes.changed():
        if isinstance(before, Value) and isinstance(after, Value):
            reader.graph.mutated.append(Mutation(name, "buffer", after, SourceLocation()))
        else:
            notes.append(f"the model sets its attribute {name}, which a file does not keep")
    return notes


def _as_tensor(leaf: Any) -> torch.Tensor:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone()
    return torch.tensor(leaf, dtype=torch.float64 if isinstance(leaf, float) else torch.int64)
