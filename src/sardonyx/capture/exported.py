"""torch.export -> AtenGraph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from sardonyx import _torch_private
from sardonyx.capture.bind import bind
from sardonyx.capture.derived_dims import compute_roots
from sardonyx.capture.exported_blocks import Regions, number_dtype
from sardonyx.capture.flat_model import is_graph_output, without_prefix
from sardonyx.capture.graph import (
    READS_A_NUMBER,
    Argument,
    AtenGraph,
    Block,
    Mutation,
    Node,
    SourceLocation,
    SymbolSource,
    TensorType,
    Value,
)
from sardonyx.capture.infer import TypeInference, tensors_in, type_of
from sardonyx.capture.location import ModuleNames, from_stack_trace
from sardonyx.capture.shapes.rules import SHAPE_RULES
from sardonyx.capture.size_arguments import ATEN_FORMS
from sardonyx.capture.storage import storage_key
from sardonyx.errors import (
    CaptureError,
    UnsupportedOperatorError,
    first_line,
    format_message,
)

_ASSERTIONS = frozenset(
    {
        "aten::_assert_async", "aten::_assert_async.msg", "aten::_assert_scalar",
        "aten::_assert_tensor_metadata", "aten::sym_constrain_range",
        "aten::sym_constrain_range_for_size", "aten::_functional_assert_async.msg",
    }
)  # fmt: skip
_WRITES = {
    "BUFFER_MUTATION": "buffer",
    "PARAMETER_MUTATION": "buffer",
    "USER_INPUT_MUTATION": "input",
}
"""By the name of the output's kind: not every PyTorch has them all."""
_READS_A_SCALAR = frozenset({"aten::_local_scalar_dense", "aten::item"})
_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)


def graph_from_exported_program(
    program: ExportedProgram, modules: ModuleNames, strip_prefix: bool
) -> AtenGraph:
    """The program's graph, its arguments bound, its sizes as expressions."""
    if _torch_private.leaves_modes_to_be_applied(program):
        try:
            program = _torch_private.with_modes_applied(program, SHAPE_RULES)
        except Exception as error:
            raise CaptureError(
                "torch.export cannot apply autocast, or a transform of torch.func, to the operators"
                f" under it: {first_line(error)}"
            ) from error
    return _Converter(program, modules, is_wrapped=strip_prefix).convert()


class _Converter:
    def __init__(self, program: ExportedProgram, modules: ModuleNames, is_wrapped: bool) -> None:
        self._program = program
        self._modules = modules
        self._is_wrapped = is_wrapped
        """Whether a FlatModel was exported, which calls the model."""
        self._rename: Callable[[str], str] = without_prefix if is_wrapped else str
        self.graph = AtenGraph(captured_by="torch.export")
        self._nodes = self.graph.nodes
        """Of the block that is being filled."""
        self._regions = Regions(self)
        self._defined: dict[torch.fx.GraphModule, set[sympy.Symbol]] = {}
        """The size symbols that a region reads off its own values, which are others each time."""
        self._meanings: dict[sympy.Symbol, Any] = {}
        """What symbols of the region at hand stand for in the graph: an argument of the region, or
        a symbol of this use of it."""
        self._inference: TypeInference | None = None
        self._env: dict[torch.fx.Node, Argument] = {}
        self._by_storage: dict[Any, Value] = {}

    def convert(self) -> AtenGraph:
        specs = {s.arg.name: s for s in self._program.graph_signature.input_specs}
        for node in self._program.graph.nodes:
            if node.op == "placeholder":
                self._env[node] = self._placeholder(node, specs[node.name])
        compute_roots(self.graph)
        self._results(self._body(self._program.graph_module))
        return self.graph

    def append(self, node: Node) -> None:
        self._nodes.append(node)

    @contextmanager
    def block(self) -> Iterator[Block]:
        """Nodes made meanwhile are those of the block."""
        outer, block = self._nodes, Block()
        self._nodes = block.nodes
        try:
            yield block
        finally:
            self._nodes = outer

    def _results(self, results: list[Argument]) -> None:
        """A functional program returns what it writes before what the model returns."""
        specs = self._program.graph_signature.output_specs
        for spec, result in zip(specs, results, strict=True):
            if spec.kind == OutputKind.USER_OUTPUT:
                if is_graph_output(result):
                    self.graph.outputs.append(result)
            elif spec.kind.name in _WRITES:
                name = self._rename(str(spec.target))
                location = result.producer.location if result.producer else SourceLocation()
                self.graph.mutated.append(Mutation(name, _WRITES[spec.kind.name], result, location))
            else:
                raise UnsupportedOperatorError(
                    f"exported programs with {spec.kind} outputs are not supported"
                )

    # -- inputs ----------------------------------------------------------------------------------

    def _placeholder(self, node: torch.fx.Node, spec: Any) -> Argument:
        if spec.kind == InputKind.USER_INPUT:
            return self._user_input(node)
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            return self._parameter(node, spec)
        raise UnsupportedOperatorError(
            f"exported programs with {spec.kind} inputs are not supported"
        )

    def _user_input(self, node: torch.fx.Node) -> Argument:
        fake = node.meta.get("val")
        if isinstance(fake, torch.Tensor):
            value = Value(node.name, type_of(fake), fake=fake)
            self.graph.inputs.append(value)
            self._note_sizes(value)
            return value
        if isinstance(fake, torch.SymInt):
            value = Value(node.name, TensorType(torch.int64, ()))
            self.graph.inputs.append(value)
            expression = _torch_private.dim_of(fake)
            if isinstance(expression, sympy.Symbol):
                self.graph.symbols.setdefault(expression, SymbolSource(value, None))
            return expression
        if isinstance(fake, (int, float)) and not isinstance(fake, bool):
            # A number that the model fixed: still an input of the file, without effect.
            dtype = torch.int64 if isinstance(fake, int) else torch.get_default_dtype()
            self.graph.inputs.append(Value(node.name, TensorType(dtype, ())))
        return fake

    def _parameter(self, node: torch.fx.Node, spec: Any) -> Value:
        state, constants = self._program.state_dict, self._program.constants
        tensor = state[spec.target] if spec.target in state else constants[spec.target]
        if _torch_private.is_transformed(tensor):
            raise CaptureError(
                "torch.export cannot record torch.func.grad, nor what is made of it, here: a tensor"
                " inside of it is a constant of the program (torch.autograd.grad of an input that"
                " requires gradients is recorded)"
            )
        if _torch_private.is_fake(tensor) and not _torch_private.is_weightless(tensor):
            raise CaptureError(
                f"{spec.target} has no data in the exported program: torch.export lost a write to"
                " .data (write to the parameter or buffer itself), or a tensor that is made under"
                " torch.vmap with out_dims"
            )
        tensor = tensor.detach()
        key = storage_key(tensor)
        if key not in self._by_storage:
            name = self._rename(spec.target)
            fake = node.meta["val"]
            value = Value(name, type_of(fake), fake=fake, constant=tensor)
            self._by_storage[key] = value
            self.graph.parameters[name] = value
        return self._by_storage[key]

    # -- nodes -----------------------------------------------------------------------------------

    def _body(self, module: torch.fx.GraphModule) -> list[Argument]:
        """Converts the nodes of a module; what it returns."""
        outputs: Argument = []
        for node in module.graph.nodes:
            if node.op == "call_function":
                self._call(node)
            elif node.op == "get_attr":
                attribute = operator.attrgetter(str(node.target))(module)
                self._env[node] = self._constant(node, attribute)
            elif node.op == "output":
                outputs = self.argument(node.args[0])
        return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]

    def region(self, module: torch.fx.GraphModule, arguments: Sequence[Argument]) -> list[Argument]:
        outer, self._meanings = self._meanings, dict(self._meanings)
        for symbol in self._defined.get(module, ()):
            self._meanings[symbol] = self.new_symbol(symbol)
        placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        for placeholder, argument in zip(placeholders, arguments, strict=True):
            self._env[placeholder] = argument
            self._identify(placeholder.meta.get("val"), argument)
        before = set(self.graph.symbols)
        try:
            results = self._body(module)
        finally:
            self._meanings = outer
        self._defined.setdefault(module, set(self.graph.symbols) - before)
        return results

    def _identify(self, recorded: Any, argument: Argument) -> None:
        """Notes which sizes and numbers the symbols of a recorded value are where it is
        `argument`."""
        if isinstance(argument, (list, tuple)):
            if isinstance(recorded, (list, tuple)):
                for inner, item in zip(recorded, argument, strict=True):
                    self._identify(inner, item)
            return
        if isinstance(argument, Value):
            if not isinstance(recorded, torch.Tensor):
                return
            pairs = zip(type_of(recorded).shape, argument.shape, strict=True)
        else:
            pairs = zip([_torch_private.dim_of(recorded)], [argument], strict=True)
        for symbol, meant in pairs:
            if isinstance(symbol, sympy.Symbol) and symbol != meant:
                self._meanings[symbol] = sympy.sympify(meant)

    def new_symbol(self, like: sympy.Symbol) -> sympy.Symbol:
        return _torch_private.new_symbol_like(self._types().mode, like)

    def _types(self) -> TypeInference:
        if self._inference is None:
            self._inference = TypeInference.for_graph(self.graph)
        return self._inference

    def number(self, recorded: Any) -> Argument:
        """A recorded number or size as the graph has it."""
        found = _torch_private.dim_of(recorded)
        if self._meanings and isinstance(found, sympy.Basic):
            return _torch_private.plain_number(found.xreplace(self._meanings))
        return found

    def _value(self, name: str, fake: torch.Tensor) -> Value:
        type = type_of(fake)
        shape = tuple(self.number(size) for size in fake.shape)
        if shape == type.shape:
            return Value(name, type, fake=fake)
        inference = self._types()
        sizes, strides = (
            [inference.argument(self.number(n)) for n in numbers]
            for numbers in (fake.shape, fake.stride())
        )
        fake = _torch_private.fake_from_strides(inference.mode, fake, sizes, strides)
        return Value(name, TensorType(type.dtype, shape), fake=fake)

    def _constant(self, node: torch.fx.Node, attribute: Any) -> Any:
        if not isinstance(attribute, torch.Tensor):
            return attribute
        name = self._rename(str(node.target))
        while name in self.graph.parameters:  # one of another region
            name += "_"
        value = Value(name, type_of(attribute), constant=attribute.detach())
        self.graph.parameters[name] = value
        return value

    def _call(self, node: torch.fx.Node) -> None:
        target = node.target
        result = node.meta.get("val")
        if target is operator.getitem:
            source, index = self.argument(node.args[0]), node.args[1]
            self._env[node] = source[index]
            return
        if not isinstance(target, _torch_private.OpOverload):
            if isinstance(result, _NUMBERS):
                self._env[node] = self.number(result)
            else:
                self._env[node] = self._region_call(node)
            return
        target = ATEN_FORMS.get(target, target)
        name = target._schema.name
        if target._schema.overload_name:
            name = f"{name}.{target._schema.overload_name}"
        if name in _ASSERTIONS:
            return
        if result is None and target._schema.returns and not node.users:
            return  # it raised, and the model went on
        arguments = bind(target, self.argument(node.args), self.argument(node.kwargs))
        if isinstance(result, _NUMBERS):
            expression = self.number(result)
            if name in _READS_A_SCALAR and self.note_number(expression, arguments["self"]):
                marker = {"self": arguments["self"]}
                self.append(Node(READS_A_NUMBER, marker, [], self._location(node)))
            self._env[node] = expression
            return
        outputs = self.results_of(node)
        self.append(Node(target, arguments, outputs, self._location(node)))
        self._env[node] = _with_values(result, iter(outputs))

    def _region_call(self, node: torch.fx.Node) -> Argument:
        name = _torch_private.higher_order_name(node.target)
        convert = self._regions.converter_of(name)
        location = self._location(node)
        if convert is None:
            raise UnsupportedOperatorError(
                format_message(
                    f"torch.export recorded {name or node.target}, which has no ONNX form",
                    [("first", location.describe())],
                )
            )
        args, kwargs = self.argument(node.args), self.argument(node.kwargs)
        results = convert(node, location, *args, **kwargs)
        recorded = node.meta.get("val")
        if isinstance(recorded, torch.Tensor):
            (results,) = results
        self._identify(recorded, results)
        return results

    def note_number(self, expression: Argument, source: Value) -> bool:
        """Notes that a number is what a 0-d tensor holds; whether it is one that was not known."""
        symbol = expression
        if isinstance(expression, sympy.Eq) and expression.args[1] == 1:  # read off a bool
            symbol = expression.args[0]
        if isinstance(symbol, sympy.Symbol):
            known = symbol in self.graph.symbols
            self.graph.symbols.setdefault(symbol, SymbolSource(source, None))
            return not known
        return False

    def results_of(self, node: torch.fx.Node) -> list[Value]:
        result = node.meta.get("val")
        several = isinstance(result, (list, tuple)) and len(result) > 1
        outputs = [
            self._value(f"{node.name}_{i}" if several else node.name, f)
            for i, f in enumerate(tensors_in(result))
        ]
        for value in outputs:
            self._note_sizes(value)
        return outputs

    def region_results(self, node: torch.fx.Node) -> tuple[list[Value], list[Argument]]:
        """What a branch or a loop gives: as values, and as the nodes after it read them."""
        values: list[Value] = []
        read: list[Argument] = []
        recorded = node.meta["val"]
        for index, leaf in enumerate(
            recorded if isinstance(recorded, (list, tuple)) else [recorded]
        ):
            name = f"{node.name}_{index}"
            if isinstance(leaf, torch.Tensor):
                values.append(self._value(name, leaf))
                self._note_sizes(values[-1])
                read.append(values[-1])
            else:
                values.append(Value(name, TensorType(number_dtype(leaf), ())))
                read.append(self.number(leaf))
                self.note_number(read[-1], values[-1])
        return values, read

    def _note_sizes(self, value: Value) -> None:
        for axis, size in enumerate(value.shape):
            if isinstance(size, sympy.Symbol):
                self.graph.symbols.setdefault(size, SymbolSource(value, axis))

    def argument(self, argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            return self._env[argument]
        if isinstance(argument, (list, tuple)):
            return [self.argument(a) for a in argument]
        if isinstance(argument, dict):
            return {k: self.argument(v) for k, v in argument.items()}
        return self.number(argument)

    def _location(self, node: torch.fx.Node) -> Any:
        stack = node.meta.get("nn_module_stack") or {}
        running = [
            (path.split("@")[0], key.partition("@")[2])
            for key, (path, _) in stack.items()
            if not path.startswith("_empty_nn")
        ]
        path = running[-1][0] if running else ""
        if self._is_wrapped:
            running = running[1:]
        calls = tuple(f"{self._rename(path)}@{number or 0}" for path, number in running)
        place = from_stack_trace(node.meta.get("stack_trace") or "")
        return self._modules.location(self._rename(path), place, calls)


def _with_values(result: Any, outputs: Iterator[Value]) -> Any:
    """The nested result with the values of the graph in place of its tensors."""
    if isinstance(result, (list, tuple)):
        return [_with_values(item, outputs) for item in result]
    return next(outputs) if isinstance(result, torch.Tensor) else result
