"""A TorchScript graph read into an AtenGraph, its types inferred on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.capture.bind import bind, dtype_from_number
from sardonyx.capture.control_flow import LOOP
from sardonyx.capture.flat_model import without_prefix
from sardonyx.capture.graph import (
    Argument,
    AtenGraph,
    Block,
    Dim,
    Node,
    SourceLocation,
    SymbolSource,
    TensorType,
    Value,
    is_symbolic,
    values_in,
)
from sardonyx.capture.infer import TypeInference, type_of
from sardonyx.capture.location import ModuleNames, from_source_range
from sardonyx.capture.quantized import LoopBody, QuantizedReader
from sardonyx.capture.quantized_tensor import PackedParameters, QuantizedTensor
from sardonyx.capture.scalars import ScalarTracker
from sardonyx.capture.shape_rules import SIZES_DEPEND_ON_DATA
from sardonyx.capture.size_conditions import SizeCondition
from sardonyx.capture.state import state_tensors
from sardonyx.capture.storage import storage_key
from sardonyx.errors import (
    CaptureError,
    UnsupportedDtypeError,
    UnsupportedOperatorError,
    format_message,
)

_WITHOUT_EFFECT = frozenset({"aten::warn", "prim::Print", "prim::RaiseException"})


class _ModuleAt:
    """A module met through prim::GetAttr, by its path from the root."""

    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path


class GraphReader:
    def __init__(self, root: torch.nn.Module, modules: ModuleNames) -> None:
        self._root = root
        self._modules = modules
        self._inference = TypeInference()
        self._graph = AtenGraph(captured_by="torch.jit.trace")
        self._env: dict[str, Argument] = {}
        self._scalars = ScalarTracker(self._inference, self._graph)
        self._quantized = QuantizedReader(
            self._emit, self._held, self._loop, lambda: self.example_sizes
        )
        self._loops = 0
        self._by_storage: dict[Any, Value] = {}
        self._attributes = {storage_key(t): path for path, t in state_tensors(root)}
        self._named_sizes: dict[str, Any] = {}
        self.fixed: dict[Any, tuple[int, SourceLocation]] = {}
        """Size symbols that an operator turned into a number, and where."""
        self.conditions: list[SizeCondition] = []
        """What operators asked of the sizes of their inputs."""

    def add_input(self, name: str, tensor: torch.Tensor, dynamic: dict[int, str]) -> None:
        mode = self._inference.mode
        tensor = self._inference.stand_in(tensor)
        if dynamic:
            fake = _torch_private.dynamic_fake(
                mode, tensor, set(dynamic), f"input_{len(self._graph.inputs)}"
            )
        else:
            fake = _torch_private.fake_from(mode, tensor)
        value = Value(name, type_of(fake), fake=fake)
        for axis, size_name in dynamic.items():
            symbol = value.shape[axis]
            assert isinstance(symbol, sympy.Symbol)
            self._graph.symbols[symbol] = SymbolSource(value, axis)
            self._graph.symbol_names[symbol] = size_name
            known = self._named_sizes.setdefault(size_name, fake.shape[axis])
            if known is not fake.shape[axis]:
                # Comparing makes the two symbols one.
                assert known == fake.shape[axis]
        self._graph.inputs.append(value)
        for known_input in self._graph.inputs:
            known_input.type = type_of(self._inference.fake_of(known_input))

    @property
    def inputs(self) -> list[Value]:
        return self._graph.inputs

    @property
    def example_sizes(self) -> dict[sympy.Symbol, int]:
        return _torch_private.example_sizes(self._inference.mode)

    def read(self, graph: Any, state: dict[str, torch.Tensor] | None) -> AtenGraph:
        """A graph of the inputs and then `state`; without it, of the module and then the inputs."""
        inputs = list(graph.inputs())
        if state is None:
            self._env[inputs.pop(0).debugName()] = _ModuleAt(())
        for source, value in zip(inputs, self._graph.inputs, strict=state is None):
            self._env[source.debugName()] = value
        kept = inputs[len(self._graph.inputs) :]
        for source, (path, tensor) in zip(kept, (state or {}).items(), strict=True):
            if source.uses():
                self._env[source.debugName()] = self._parameter(path, tensor.detach())
        for node in graph.nodes():
            self._node(node)
        outputs = [self._env[o.debugName()] for o in graph.outputs()]
        is_tuple = len(outputs) == 1 and isinstance(outputs[0], list)
        self._graph.outputs = list(outputs[0]) if is_tuple else outputs
        for index, output in enumerate(self._graph.outputs):
            if isinstance(output, QuantizedTensor):
                raise UnsupportedDtypeError(
                    f"output {index} is quantized, a type that ONNX does not have: return its"
                    " dequantize() or its int_repr()"
                )
        return self._graph

    # -- nodes -----------------------------------------------------------------------------------

    def _node(self, node: Any) -> None:
        kind = node.kind()
        reader = _READERS.get(kind)
        if reader is not None:
            reader(self, node)
        elif kind in _WITHOUT_EFFECT:
            return
        elif kind.startswith("prim::"):
            raise _no_form(kind, self.location(node))
        else:
            self._operator(node)

    def _inputs(self, node: Any) -> list[Argument]:
        return [self._env[i.debugName()] for i in node.inputs()]

    def _set(self, node: Any, result: Argument) -> None:
        (output,) = node.outputs()
        self._env[output.debugName()] = result

    def _operator(self, node: Any) -> None:
        op = _torch_private.overload_of(node)
        if op is None:
            raise UnsupportedOperatorError(
                format_message(
                    f"{node.kind()} is no operator PyTorch knows",
                    [("first", self.location(node).describe())],
                )
            )
        arguments = bind(op, self._operands(node, op))
        scalar = self._scalars.read(op, arguments)
        if scalar is not None:
            self._set(node, scalar.value)
            return
        location = self.location(node)
        if self._quantized.concerns(op, arguments):
            self._set_results(node, self._quantized.read(op, arguments, location))
            return
        if not _torch_private.is_known_to_dispatcher(op):  # arithmetic of a scripted function
            raise _no_form(str(op), location)
        made = self._typed(node, op, arguments, location)
        self._graph.nodes.append(made)
        self._scalars.follow(made)
        self._set_results(node, list(made.outputs))

    def _set_results(self, node: Any, values: list[Argument]) -> None:
        outputs = list(node.outputs())
        for place, output in enumerate(outputs):
            if str(output.type()).startswith("List["):
                count = len(values) - (len(outputs) - place - 1)
                self._env[output.debugName()] = values[:count]
                values = values[count:]
            else:
                self._env[output.debugName()], *values = values

    def _emit(
        self, op: Any, arguments: Sequence[Argument], location: SourceLocation
    ) -> list[Value]:
        """The results of an operator that is no node of the trace."""
        made = self._inferred(op, bind(op, arguments), location)
        self._graph.nodes.append(made)
        self._scalars.follow(made)
        return made.outputs

    def _loop(
        self, count: Dim, carried: Sequence[Value], body: LoopBody, location: SourceLocation
    ) -> list[Value]:
        """A loop that is no node of the trace: what is carried last, and what is stacked."""
        self._loops += 1
        name = f"loop_{self._loops}"
        block = Block([Value(f"{name}_iteration", TensorType(torch.int64, ()))])
        block.inputs += [Value(f"{name}_carried_{i}", v.type) for i, v in enumerate(carried)]
        outer, self._graph.nodes = self._graph.nodes, block.nodes
        kept, stacked = body(block.inputs[0], block.inputs[1:])
        self._graph.nodes = outer
        block.outputs = [None, *kept, *stacked]
        types = [v.type for v in carried]
        types += [TensorType(v.dtype, (count, *v.shape)) for v in stacked]
        results = [Value(f"{name}_result_{i}", type) for i, type in enumerate(types)]
        arguments = bind(LOOP, [count, None, list(carried)])
        self._graph.nodes.append(Node(LOOP, arguments, results, location, blocks=[block]))
        return results

    def _operands(self, node: Any, op: Any) -> list[Argument]:
        """Its inputs. A Python number that the trace holds as a tensor comes as a number, which
        only operators of arithmetic take for a tensor."""
        operands = self._inputs(node)
        if _torch_private.takes_numbers_for_tensors(op):
            return operands
        return [
            self._as_tensor(operand, source)
            if source.type().kind() == "TensorType" and isinstance(operand, (int, float))
            else operand
            for operand, source in zip(operands, node.inputs(), strict=True)
        ]

    def _as_tensor(self, number: float, source: Any) -> Value:
        tensor = torch.tensor(number, dtype=source.type().dtype())
        return Value(source.debugName(), type_of(tensor), constant=tensor)

    def _typed(
        self, node: Any, op: Any, arguments: dict[str, Argument], location: SourceLocation
    ) -> Node:
        recorded = self._recorded_types(node, op, arguments)
        if recorded is None:
            return self._inferred(op, arguments, location)
        if op.namespace != "aten":  # nothing says whether its sizes depend on data
            with contextlib.suppress(CaptureError):
                return self._inferred(op, arguments, location)
        values = [Value(o.debugName(), t) for o, t in zip(node.outputs(), recorded, strict=True)]
        return Node(op, arguments, values, location)

    def _inferred(self, op: Any, arguments: dict[str, Argument], location: SourceLocation) -> Node:
        known = _torch_private.guard_count(self._inference.mode)
        try:
            result = self._inference.run(op, arguments)
        except Exception as error:
            raise CaptureError(
                format_message(
                    "an operator of the trace cannot take the dynamic sizes:"
                    f" {(str(error).strip() or type(error).__name__).splitlines()[0]}",
                    [("at", location.describe())],
                )
            ) from error
        for symbol, size in _torch_private.fixed_symbols(self._inference.mode).items():
            self.fixed.setdefault(symbol, (size, location))
        place = (location.file, location.line, location.text)
        for guard in _torch_private.guards(self._inference.mode, start=known):
            if not guard.is_layout_check:
                self.conditions.append(SizeCondition(guard.expression, place, False))
        return self._inference.node(self._graph, op, arguments, result, location)

    def _recorded_types(
        self, node: Any, op: Any, arguments: dict[str, Argument]
    ) -> list[TensorType] | None:
        """The types the trace saw, where they are the types of every run."""
        if (
            torch.Tag.dynamic_output_shape in op.tags
            or op in SIZES_DEPEND_ON_DATA
            or _reads_a_mask(op, arguments)
        ):
            return None
        if any(is_symbolic(a) for a in arguments.values()):
            return None
        if any(
            not isinstance(d, int)
            for a in arguments.values()
            for v in values_in(a)
            for d in v.shape
        ):
            return None
        types = []
        for output in node.outputs():
            kind = output.type()
            if not output.isCompleteTensor():
                return None
            types.append(TensorType(kind.dtype(), tuple(kind.sizes())))
        return types

    # -- what only TorchScript has ---------------------------------------------------------------

    def _constant(self, node: Any) -> None:
        value = node.output().toIValue()
        if isinstance(value, torch.Tensor) and value.is_quantized:
            self._set(node, self._quantized.constant(node.output().debugName(), value))
        elif isinstance(value, torch.Tensor):
            path = self._attributes.get(storage_key(value))
            if path is not None:
                self._set(node, self._parameter(path, value.detach()))
                return
            self._set(
                node, Value(node.output().debugName(), type_of(value), constant=value.detach())
            )
        else:
            self._set(node, value)

    def _get_attribute(self, node: Any) -> None:
        (owner,) = self._inputs(node)
        path = (*owner.path, node.s("name"))
        found: Any = self._root
        for name in path:
            found = getattr(found, name)
        if isinstance(found, torch.ScriptObject):
            owners = [name for name in path if name != "_packed_params"]
            self._set(node, PackedParameters(without_prefix(".".join(owners)), found))
        elif isinstance(found, torch.Tensor):
            self._set(node, self._parameter(".".join(path), found.detach()))
        elif isinstance(found, torch.nn.Module):
            self._set(node, _ModuleAt(path))
        else:
            self._set(node, found)

    def _parameter(self, path: str, tensor: torch.Tensor) -> Value | QuantizedTensor:
        if tensor.is_quantized:
            return self._quantized.constant(without_prefix(path), tensor)
        key = storage_key(tensor)
        if key not in self._by_storage:
            self._by_storage[key] = self._held(without_prefix(path), tensor)
        return self._by_storage[key]

    def _held(self, name: str, tensor: torch.Tensor) -> Value:
        """A parameter of the graph, by the name it is known under."""
        if name not in self._graph.parameters:
            self._graph.parameters[name] = Value(name, type_of(tensor), constant=tensor)
        return self._graph.parameters[name]

    def _construct(self, node: Any) -> None:
        self._set(node, self._inputs(node))

    def _unpack(self, node: Any) -> None:
        (items,) = self._inputs(node)
        for output, item in zip(node.outputs(), items, strict=True):
            self._env[output.debugName()] = item

    def _number_to_tensor(self, node: Any) -> None:
        number = self._inputs(node)[0]
        made = self._scalars.tensor_of(number, self.location(node))
        self._graph.nodes.append(made)
        self._set(node, made.outputs[0])

    def _new_tensor(self, node: Any) -> None:
        """torch.tensor() in a scripted function: an operator that exists in TorchScript alone."""
        data, dtype = self._inputs(node)[:2]
        if isinstance(data, list):
            if is_symbolic(data) or any(True for _ in values_in(data)):
                raise UnsupportedOperatorError(
                    format_message(
                        "torch.tensor() of a list of computed numbers has no ONNX form here",
                        [("first", self.location(node).describe()), ("try", "torch.stack")],
                    )
                )
            tensor = torch.tensor(data, dtype=None if dtype is None else dtype_from_number(dtype))
            self._set(node, Value(node.output().debugName(), type_of(tensor), constant=tensor))
            return
        self._number_to_tensor(node)
        if dtype is not None:
            made = self._inference.call(
                self._graph,
                torch.ops.aten._to_copy.default,
                [self._env[node.output().debugName()]],
                self.location(node),
                {"dtype": dtype_from_number(dtype)},
            )
            self._graph.nodes.append(made)
            self._scalars.follow(made)
            self._set(node, made.outputs[0])

    def _autograd_function(self, node: Any) -> None:
        """The operators that ran inside the forward of a torch.autograd.Function, in its place."""
        if not node.hasAttribute("Subgraph"):
            raise _no_form(node.kind(), self.location(node))
        body = node.g("Subgraph")
        outer, given = self._env, self._inputs(node)
        # The names of its values are its own.
        self._env = {i.debugName(): a for i, a in zip(body.inputs(), given, strict=True)}
        for inner in body.nodes():
            self._node(inner)
        results = [self._env[o.debugName()] for o in body.outputs()]
        self._env = outer
        gives_tuple = node.output().type().kind() == "TupleType"
        self._set(node, results if gives_tuple else results[0])

    def location(self, node: Any) -> SourceLocation:
        scope = node.scopeName().split("/")[-1]
        path = without_prefix(scope.removeprefix("__module").removeprefix("."))
        return self._modules.location(path, from_source_range(node.sourceRange()))


_READERS: dict[str, Callable[[GraphReader, Any], None]] = {
    "prim::Constant": GraphReader._constant,
    "prim::GetAttr": GraphReader._get_attribute,
    "prim::ListConstruct": GraphReader._construct,
    "prim::TupleConstruct": GraphReader._construct,
    "prim::ListUnpack": GraphReader._unpack,
    "prim::TupleUnpack": GraphReader._unpack,
    "prim::NumToTensor": GraphReader._number_to_tensor,
    "prim::PythonOp": GraphReader._autograd_function,
    "aten::tensor": GraphReader._new_tensor,
}


def _no_form(kind: str, location: SourceLocation) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(
        format_message(
            f"{kind} in TorchScript has no ONNX form yet", [("first", location.describe())]
        )
    )


def _reads_a_mask(op: Any, arguments: dict[str, Argument]) -> bool:
    """Indexing by a mask gives as many elements as the mask has ones."""
    if op._schema.name not in ("aten::index", "aten::_unsafe_index"):
        return False
    return any(v.dtype in (torch.bool, torch.uint8) for v in values_in(arguments["indices"]))
