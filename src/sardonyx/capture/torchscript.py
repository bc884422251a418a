"""A TorchScript graph read into an AtenGraph, its types inferred on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.capture.autograd_functions import operator_in_torchscript
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
from sardonyx.capture.location import (
    ModuleNames,
    from_source_range,
)
from sardonyx.capture.module_calls import RunningCalls
from sardonyx.capture.pure_forms import METADATA_WRITES
from sardonyx.capture.quantized import LoopBody, QuantizedReader
from sardonyx.capture.quantized_tensor import PackedParameters, QuantizedTensor
from sardonyx.capture.scalars import ScalarTracker
from sardonyx.capture.script_aliases import copied
from sardonyx.capture.script_blocks import FOREVER, ModelRaises, ScriptBlocks
from sardonyx.capture.script_calls import NotHere, ScriptCalls
from sardonyx.capture.script_exits import constants_at_exit
from sardonyx.capture.script_list_operators import ListOperators
from sardonyx.capture.script_lists import ScriptLists
from sardonyx.capture.script_numbers import ScriptNumbers, is_arithmetic
from sardonyx.capture.script_patterns import CannotJoin, Conform, OpenDims, TensorLeaf, leaf_type
from sardonyx.capture.script_questions import TensorQuestions
from sardonyx.capture.script_reshaped import ReshapedTensors
from sardonyx.capture.script_types import is_instance
from sardonyx.capture.script_values import (
    UNINITIALIZED,
    ComputedNumber,
    DynamicItems,
    Heap,
    ListItems,
    MaybeNone,
    Mutable,
    ScriptDict,
    ScriptInstance,
    ScriptList,
    is_constant,
    is_number,
    number_dtype,
)
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

_WITHOUT_EFFECT = frozenset({"aten::warn", "prim::Print"})
_MOST_COPIES = 6
"""Branches, one inside the other, that each take a copy of what follows them."""


_OF_PYTORCH = frozenset({"aten", "prims", "quantized", "quantized_decomposed", "_quantized"})
"""Namespaces whose operators all have fake kernels, or are known not to be able to have one."""


class _ModuleAt:
    """A module met through prim::GetAttr, by its path from the root."""

    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path


class GraphReader:
    def __init__(
        self, root: torch.nn.Module, modules: ModuleNames, captured_by: str = "torch.jit.trace"
    ) -> None:
        self._root = root
        self._modules = modules
        self._running = RunningCalls(modules.classes)
        self.inference = TypeInference()
        self.graph = AtenGraph(captured_by=captured_by)
        self.heap = Heap()
        self._reshaped = ReshapedTensors(self.heap)
        self.numbers = ScriptNumbers(self.emit, self.graph, self.inference)
        self.lists = ScriptLists(self)
        self._list_operators = ListOperators(self, self.lists)
        self._calls = ScriptCalls(self.heap, self.lists, self.numbers, self._either)
        self._questions = TensorQuestions(self.numbers, self.lists, self._either)
        self._blocks = ScriptBlocks(self)
        self.conform = Conform(self.numbers.as_tensor, self.lists.dynamic_content, self._filler)
        self.notes: list[str] = []
        self._env: dict[str, Argument] = {}
        self._cells: dict[tuple[str, ...], ScriptInstance] = {}
        """Attributes of modules, each the one of an object: programs may set them."""
        self._held_before: dict[tuple[str, ...], tuple[Argument, Argument]] = {}
        """What they held at first, and a copy of what was in it."""
        self._scalars = ScalarTracker(
            self.inference, self.graph, are_python_numbers=captured_by == "torch.jit.trace"
        )
        self._quantized = QuantizedReader(
            self._emit, self._held, self._loop, lambda: self.example_sizes
        )
        self._copies = 0
        self._loops = 0
        self._location = SourceLocation()
        self._by_storage: dict[Any, Value] = {}
        self._attributes = {storage_key(t): path for path, t in state_tensors(root)}
        self._named_sizes: dict[str, Any] = {}
        self.fixed: dict[Any, tuple[int, SourceLocation]] = {}
        """Size symbols that an operator turned into a number, and where."""
        self.conditions: list[SizeCondition] = []
        """What operators asked of the sizes of their inputs."""

    def add_input(self, name: str, tensor: torch.Tensor, dynamic: dict[int, str]) -> None:
        mode = self.inference.mode
        tensor = self.inference.stand_in(tensor)
        if dynamic:
            fake = _torch_private.dynamic_fake(
                mode, tensor, set(dynamic), f"input_{len(self.graph.inputs)}"
            )
        else:
            fake = _torch_private.fake_from(mode, tensor)
        value = Value(name, type_of(fake), fake=fake)
        for axis, size_name in dynamic.items():
            symbol = value.shape[axis]
            assert isinstance(symbol, sympy.Symbol)
            self.graph.symbols[symbol] = SymbolSource(value, axis)
            self.graph.symbol_names[symbol] = size_name
            known = self._named_sizes.setdefault(size_name, fake.shape[axis])
            if known is not fake.shape[axis]:
                # Comparing makes the two symbols one.
                assert known == fake.shape[axis]
        self.graph.inputs.append(value)
        for known_input in self.graph.inputs:
            known_input.type = type_of(self.inference.fake_of(known_input))

    @property
    def inputs(self) -> list[Value]:
        return self.graph.inputs

    @property
    def example_sizes(self) -> dict[sympy.Symbol, int]:
        return _torch_private.example_sizes(self.inference.mode)

    def read(self, graph: Any, state: dict[str, torch.Tensor] | None) -> AtenGraph:
        """A trace: of the inputs and then `state`; without it, of the module, then the inputs."""
        inputs = list(graph.inputs())
        if state is None:
            self._env[inputs.pop(0).debugName()] = _ModuleAt(())
        for source, value in zip(inputs, self.graph.inputs, strict=state is None):
            self._env[source.debugName()] = value
        kept = inputs[len(self.graph.inputs) :]
        for source, (path, tensor) in zip(kept, (state or {}).items(), strict=True):
            if source.uses():
                self._env[source.debugName()] = self._parameter(path, tensor.detach())
        outputs = self.read_block(list(graph.nodes()), list(graph.outputs()))
        is_tuple = len(outputs) == 1 and isinstance(outputs[0], (tuple, ScriptList))
        self.graph.outputs = list(self._plain(outputs[0]) if is_tuple else outputs)
        self.check_outputs()
        return self.graph

    def read_program(self, graph: Any, arguments: dict[str, Argument]) -> Argument:
        """A scripted function or method: what it returns of its arguments by name, the module as
        `self` among them."""
        for source, argument in zip(graph.inputs(), arguments.values(), strict=True):
            self._env[source.debugName()] = argument
        try:
            (result,) = self.read_block(list(graph.nodes()), list(graph.outputs()), at_end=True)
        except ModelRaises as error:
            raise CaptureError(
                format_message(f"the model raises: {error}", [("at", error.location.describe())])
            ) from error
        return result

    def check_outputs(self) -> None:
        for index, output in enumerate(self.graph.outputs):
            if isinstance(output, QuantizedTensor):
                raise UnsupportedDtypeError(
                    f"output {index} is quantized, a type that ONNX does not have: return its"
                    " dequantize() or its int_repr()"
                )

    def module_at(self, path: tuple[str, ...]) -> Any:
        """What a variable holds that is a module."""
        return _ModuleAt(path)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # -- blocks ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def block(self) -> Iterator[Block]:
        made = Block()
        outer, self.graph.nodes = self.graph.nodes, made.nodes
        try:
            self._reshaped.enter(made)
            with self._scalars.inside_a_block():
                yield made
        finally:
            self._reshaped.leave()
            self.graph.nodes = outer

    def read_block(
        self,
        nodes: Sequence[Any],
        outputs: Sequence[Any],
        then: Callable[[list[Argument]], list[Argument]] | None = None,
        *,
        at_end: bool = False,
    ) -> list[Argument]:
        """Reads nodes into the current block; what the outputs hold at the end, or what comes of
        it where more is read after them. `at_end`: the program ends there."""
        for place, node in enumerate(nodes):
            if node.kind() != "prim::If":
                self._node(node)
                continue
            readings = [partial(self._branch, block) for block in node.blocks()]
            (condition,) = self._inputs(node)
            location = self._location = self.location(node)
            try:
                results = self._blocks.branch(condition, readings, location)
            except CannotJoin as reason:
                if self._copies >= _MOST_COPIES:
                    raise _different_types(reason, location) from reason
                # What follows is read once more in each branch, where its types are known.
                rest = partial(self.read_block, nodes[place + 1 :], outputs, then, at_end=at_end)
                readings = [
                    partial(self._branch_and_rest, node, block, rest, at_end)
                    for block in node.blocks()
                ]
                self._copies += 1
                try:
                    return self._blocks.branch(condition, readings, location, at_end=at_end)
                except CannotJoin as again:
                    if at_end:
                        raise _different_types(again, location) from again
                    raise
                finally:
                    self._copies -= 1
            for output, result in zip(node.outputs(), results, strict=True):
                self._env[output.debugName()] = result
        results = [self._reshaped.now(self._env[o.debugName()]) for o in outputs]
        return results if then is None else then(results)

    def _branch(self, block: Any) -> list[Argument]:
        return self.read_block(list(block.nodes()), list(block.outputs()))

    def _branch_and_rest(
        self, node: Any, block: Any, rest: Callable[[], list[Argument]], at_end: bool
    ) -> list[Argument]:
        def go_on(results: list[Argument]) -> list[Argument]:
            for output, result in zip(node.outputs(), results, strict=True):
                self._env[output.debugName()] = result
            return rest()

        return self.read_block(list(block.nodes()), list(block.outputs()), go_on, at_end=at_end)

    def _read_loop(self, node: Any) -> None:
        count, condition, *start = self._inputs(node)
        (block,) = node.blocks()
        sources, nodes, outputs = list(block.inputs()), list(block.nodes()), list(block.outputs())

        def body(iteration: Argument, carried: Sequence[Argument]) -> list[Argument]:
            for source, argument in zip(sources, (iteration, *carried), strict=True):
                self._env[source.debugName()] = argument
            return self.read_block(nodes, outputs)

        results = self._blocks.loop(count, condition, start, body, self._location)
        if count == FOREVER and condition is True:
            for place, flag in constants_at_exit(block).items():
                results[place] = flag
        for output, result in zip(node.outputs(), results, strict=True):
            self._env[output.debugName()] = result

    def _either(
        self, condition: Argument, one: Callable[[], Argument], other: Callable[[], Argument]
    ) -> Argument:
        """A branch that the program does not have itself."""
        readings = [lambda: [one()], lambda: [other()]]
        return self._blocks.branch(condition, readings, self._location)[0]

    def repeat(
        self,
        count: Argument,
        start: Sequence[Argument],
        body: Callable[[Argument, Sequence[Argument]], list[Argument]],
    ) -> list[Argument]:
        """A loop that the program does not have itself; `body` gives what is carried on."""
        return self._blocks.loop(
            count, True, start, lambda i, carried: [True, *body(i, carried)], self._location
        )

    def ask_to_unroll(self, index: Argument) -> None:
        self._blocks.ask_to_unroll(index)

    def joined_lists(self, first: ListItems, second: ListItems) -> ListItems:
        return self.lists.joined(first, second)

    # -- nodes -----------------------------------------------------------------------------------

    def _node(self, node: Any) -> None:
        kind = node.kind()
        self._location = self.location(node)
        try:
            self._read_node(kind, node)
        except CaptureError as error:
            if "\n" in str(error):
                raise
            raise CaptureError(
                format_message(str(error), [("at", self._location.describe())])
            ) from error

    def _read_node(self, kind: str, node: Any) -> None:
        reader = _READERS.get(kind)
        if reader is not None:
            reader(self, node)
            return
        if kind in _WITHOUT_EFFECT:
            return
        operands = self._inputs(node)
        for calls in (self._calls, self._questions):
            with contextlib.suppress(NotHere):
                self._set_call_result(node, calls.call(kind, operands))
                return
        if is_arithmetic(kind, operands) and not all(map(is_constant, operands)):
            dtype = _NUMBERS.get(node.output().type().kind()) or number_dtype_of(operands)
            self._set(node, self.numbers.compute(kind, operands, dtype))
            return
        optional = next((o for o in operands if isinstance(o, MaybeNone)), None)
        if optional is not None:
            self._of_either(kind, node, optional, optional.present, [optional.content, None])
            return
        op = _torch_private.overload_of(node)
        if op is None or not _torch_private.is_known_to_dispatcher(op):
            self._script_operator(kind, node, op, operands)
            return
        for source, operand in zip(node.inputs(), operands, strict=True):
            if source.type().kind() == "BoolType" and isinstance(
                operand, (ComputedNumber, sympy.Basic)
            ):
                # Operators have no form for a bool that is computed.
                self._of_either(kind, node, operand, operand, [True, False])
                return
        self._operator(node, op)

    def _set_call_result(self, node: Any, result: Argument) -> None:
        outputs = list(node.outputs())
        results = result if len(outputs) > 1 else [result]
        for output, each in zip(outputs, results, strict=bool(outputs)):
            self._env[output.debugName()] = each

    def _of_either(
        self,
        kind: str,
        node: Any,
        operand: Argument,
        condition: Argument,
        ways: list[Argument],
    ) -> None:
        """One call where an operand, which a condition decides, is this, one where it is that."""
        names = [i.debugName() for i in node.inputs() if self._env[i.debugName()] is operand]
        outputs = [o.debugName() for o in node.outputs()]

        def reading(argument: Argument) -> list[Argument]:
            self._env.update(dict.fromkeys(names, argument))
            try:
                self._read_node(kind, node)
            finally:
                self._env.update(dict.fromkeys(names, operand))
            return [self._env[name] for name in outputs]

        readings = [partial(reading, way) for way in ways]
        try:
            results = self._blocks.branch(condition, readings, self._location)
        except CannotJoin as reason:
            raise CaptureError(f"what {kind} gives has two types: {reason}") from reason
        self._env.update(dict(zip(outputs, results, strict=True)))

    def _script_operator(self, kind: str, node: Any, op: Any, operands: list[Argument]) -> None:
        """What TorchScript alone has: run by it where all is known."""
        if op is not None and len(operands) <= len(op._schema.arguments):
            arguments = bind(op, [self._plain(o) for o in operands])
            scalar = self._scalars.read(op, arguments)
            if scalar is not None:
                self._set(node, self.wrapped(scalar.value))
                return
            if self._reads_number(node, arguments):
                return
            if kind == "aten::to":
                self._set(node, self._moved(arguments))
                return
        if not all(map(is_constant, operands)):
            raise _no_form(kind, self._location)
        try:
            given = [_python(o) for o in operands]
            # Without its overload, an operator is the first that takes the values.
            by_name = op is None or len(operands) > len(op._schema.arguments)
            run = partial(_torch_private.run_script_operator, kind) if by_name else op
            result = run(*given)
        except RuntimeError as error:
            raise _no_form(kind, self._location) from error
        self._set_call_result(node, self.wrapped(result))

    def _moved(self, arguments: dict[str, Argument]) -> Argument:
        """`x.to(...)` of a device, or of what may be None: itself where nothing changes."""
        tensor, dtype = arguments["self"], arguments.get("dtype")
        wanted = tensor.dtype if dtype is None else _dtype_of(dtype)
        if wanted == tensor.dtype and not arguments.get("copy"):
            return tensor
        return self.emit(torch.ops.aten._to_copy.default, [tensor], dtype=wanted)[0]

    def _reads_number(self, node: Any, arguments: dict[str, Argument]) -> bool:
        """`int(x)`, `x.item()`."""
        read = next(iter(arguments.values()), None)
        if node.kind() not in _READ_NUMBERS or not isinstance(read, Value):
            return False
        kind = node.output().type().kind()
        dtype = _NUMBERS.get(kind)
        if kind == "NumberType":
            held = read.dtype
            dtype = torch.float64 if held.is_floating_point else torch.int64
            dtype = torch.bool if held == torch.bool else dtype
        if dtype is None:
            return False
        self._set(node, self.numbers.read(read, dtype))
        return True

    def _inputs(self, node: Any) -> list[Argument]:
        return [self._reshaped.now(self._env[i.debugName()]) for i in node.inputs()]

    def _set(self, node: Any, result: Argument) -> None:
        (output,) = node.outputs()
        self._env[output.debugName()] = result

    def _operator(self, node: Any, op: Any) -> None:
        found = self._list_operators.call(op._schema.name, self._inputs(node), _unpacked(node))
        if found is not None:
            self._set(node, found)
            return
        arguments = bind(op, self._operands(node, op))
        scalar = self._scalars.read(op, arguments)
        if scalar is not None:
            self._set(node, self.wrapped(scalar.value))
            return
        if self._reads_number(node, arguments):
            return
        location = self._location
        if self._quantized.concerns(op, arguments):
            self._set_results(node, self._quantized.read(op, arguments, location))
            return
        if op._schema.name in METADATA_WRITES and self.graph.captured_by != "torch.jit.trace":
            self._reshape(node, op, arguments)
            return
        if any("Tensor" not in str(result.type) for result in op._schema.returns):
            raise _no_form(node.kind(), location)
        made = self._typed(node, op, arguments, location)
        self.graph.nodes.append(made)
        self._scalars.follow(made)
        self._set_results(node, list(made.outputs))

    def _reshape(self, node: Any, op: Any, arguments: dict[str, Argument]) -> None:
        tensor = self._env[next(node.inputs()).debugName()]
        view = METADATA_WRITES[op._schema.name](op)
        made = self._inferred(view, arguments, self._location)
        self.graph.nodes.append(made)
        self._reshaped.reshape(tensor, made.outputs[0])
        self._set(node, tensor)

    def _set_results(self, node: Any, values: list[Argument]) -> None:
        outputs = list(node.outputs())
        for place, output in enumerate(outputs):
            if str(output.type()).startswith("List["):
                count = len(values) - (len(outputs) - place - 1)
                self._env[output.debugName()] = self.lists.new(values[:count])
                values = values[count:]
            else:
                self._env[output.debugName()], *values = values

    def emit(self, op: Any, args: Sequence[Argument], **kwargs: Argument) -> list[Value]:
        """The results of an operator that is no node of the program."""
        if op is torch.ops.aten.scalar_tensor.default:
            made = self._scalars.tensor_of(args[0], self._location, kwargs["dtype"])
        else:
            made = self._inferred(op, bind(op, args, kwargs), self._location)
        self.graph.nodes.append(made)
        self._scalars.follow(made)
        return made.outputs

    def emit_typed(
        self,
        op: Any,
        args: Sequence[Argument],
        dtype: torch.dtype,
        dims: OpenDims,
        *,
        is_sequence: bool = False,
    ) -> Value:
        """A call whose type PyTorch does not say; unknown dims become symbols."""
        self._loops += 1
        sizes = list(dims)
        unknown = [] if is_sequence else [a for a, d in enumerate(sizes) if d is None]
        for axis in unknown:
            size = _torch_private.new_data_dependent_length(self.inference.mode)
            sizes[axis] = _torch_private.dim_of(size)
        value = Value(f"item_{self._loops}", leaf_type(dtype, tuple(sizes), is_sequence))
        for axis in unknown:
            self.graph.symbols[value.shape[axis]] = SymbolSource(value, axis)
        self.graph.nodes.append(Node(op, bind(op, args), [value], self._location))
        return value

    def _filler(self, leaf: TensorLeaf) -> Value:
        """A tensor that nothing reads."""
        sizes = [d if isinstance(d, int) else 1 for d in leaf.dims or ()]
        return self.emit(torch.ops.aten.full.default, [sizes, 0], dtype=leaf.dtype)[0]

    def _emit(
        self, op: Any, arguments: Sequence[Argument], location: SourceLocation
    ) -> list[Value]:
        """The results of an operator that is no node of the trace."""
        made = self._inferred(op, bind(op, arguments), location)
        self.graph.nodes.append(made)
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
        outer, self.graph.nodes = self.graph.nodes, block.nodes
        kept, stacked = body(block.inputs[0], block.inputs[1:])
        self.graph.nodes = outer
        block.outputs = [None, *kept, *stacked]
        types = [v.type for v in carried]
        types += [TensorType(v.dtype, (count, *v.shape)) for v in stacked]
        results = [Value(f"{name}_result_{i}", type) for i, type in enumerate(types)]
        arguments = bind(LOOP, [count, None, list(carried)])
        self.graph.nodes.append(Node(LOOP, arguments, results, location, blocks=[block]))
        return results

    def _operands(self, node: Any, op: Any) -> list[Argument]:
        """Its inputs. A Python number that the trace holds as a tensor comes as a number, which
        only operators of arithmetic take for a tensor."""
        operands = [
            self._bound(operand, source)
            for operand, source in zip(self._inputs(node), node.inputs(), strict=True)
        ]
        if _torch_private.takes_numbers_for_tensors(op):
            return operands
        return [
            self._as_tensor(operand, source)
            if source.type().kind() == "TensorType" and isinstance(operand, (int, float))
            else operand
            for operand, source in zip(operands, node.inputs(), strict=True)
        ]

    def _bound(self, operand: Argument, source: Any) -> Argument:
        """As an operator takes it."""
        if operand is UNINITIALIZED:
            raise CaptureError("a variable is read that no path has set")
        if isinstance(operand, ComputedNumber) and source.type().kind() == "TensorType":
            return operand.value
        return self._plain(operand)

    def _plain(self, argument: Argument) -> Argument:
        if isinstance(argument, ComputedNumber):
            return self.numbers.as_scalar(argument)
        if isinstance(argument, ScriptList):
            items = self.lists.known_items(argument.state)
            if items is None:
                raise CaptureError("an operator takes a list whose length must be known")
            return [self._plain(a) for a in items]
        if isinstance(argument, tuple):
            return [self._plain(a) for a in argument]
        return argument

    def wrapped(self, found: Any) -> Argument:
        """A Python value as the program's variables hold it."""
        if isinstance(found, list):
            return self.lists.new([self.wrapped(item) for item in found])
        if isinstance(found, tuple):
            return tuple(self.wrapped(item) for item in found)
        if isinstance(found, dict):
            return self.heap.new(ScriptDict({k: self.wrapped(v) for k, v in found.items()}))
        return found

    def _as_tensor(self, number: float, source: Any) -> Value:
        tensor = torch.tensor(number, dtype=source.type().dtype())
        return Value(source.debugName(), type_of(tensor), constant=tensor)

    def _typed(
        self, node: Any, op: Any, arguments: dict[str, Argument], location: SourceLocation
    ) -> Node:
        recorded = self._recorded_types(node, op, arguments)
        if recorded is None:
            try:
                return self._inferred(op, arguments, location)
            except CaptureError:
                if op.namespace in _OF_PYTORCH or not all(
                    o.isCompleteTensor() for o in node.outputs()
                ):
                    raise
                return self._with_open_sizes(node, op, arguments, location)
        if op.namespace != "aten":  # nothing says whether its sizes depend on data
            with contextlib.suppress(CaptureError):
                return self._inferred(op, arguments, location)
        values = [Value(o.debugName(), t) for o, t in zip(node.outputs(), recorded, strict=True)]
        return Node(op, arguments, values, location)

    def _with_open_sizes(
        self, node: Any, op: Any, arguments: dict[str, Argument], location: SourceLocation
    ) -> Node:
        """A call of an operator that has no fake kernel: its ranks and dtypes are those of the
        recording, its sizes are read when the file runs."""
        values = []
        for output in node.outputs():
            sizes = [
                _torch_private.dim_of(_torch_private.new_data_dependent_length(self.inference.mode))
                for _ in output.type().sizes()
            ]
            value = Value(output.debugName(), TensorType(output.type().dtype(), tuple(sizes)))
            for axis, size in enumerate(sizes):
                self.graph.symbols[size] = SymbolSource(value, axis)
            values.append(value)
        return Node(op, arguments, values, location)

    def _inferred(self, op: Any, arguments: dict[str, Argument], location: SourceLocation) -> Node:
        known = _torch_private.guard_count(self.inference.mode)
        try:
            result = self.inference.run(op, arguments)
        except Exception as error:
            computed = _computed_argument(op, arguments)
            if computed is not None:
                raise CaptureError(
                    format_message(
                        f"{op._schema.name} is called with a `{computed}` that is computed at run"
                        " time, and has to be known",
                        [("at", location.describe())],
                    )
                ) from error
            raise CaptureError(
                format_message(
                    "an operator of the trace cannot take the dynamic sizes:"
                    f" {(str(error).strip() or type(error).__name__).splitlines()[0]}",
                    [("at", location.describe())],
                )
            ) from error
        for symbol, size in _torch_private.fixed_symbols(self.inference.mode).items():
            self.fixed.setdefault(symbol, (size, location))
        place = (location.file, location.line, location.text)
        for guard in _torch_private.guards(self.inference.mode, start=known):
            if not guard.is_layout_check:
                self.conditions.append(SizeCondition(guard.expression, place, False))
        return self.inference.node(self.graph, op, arguments, result, location)

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
            self._set(node, self.wrapped(value))

    def _get_attribute(self, node: Any) -> None:
        (owner,) = self._inputs(node)
        name = node.s("name")
        if isinstance(owner, ScriptInstance):
            self._set(node, owner.state[name])
        else:
            kind = node.output().type()
            class_name = str(kind) if kind.kind() == "ClassType" else ""
            self._set(node, self._attribute((*owner.path, name), class_name))

    def _set_attribute(self, node: Any) -> None:
        owner, content = self._inputs(node)
        name = node.s("name")
        if isinstance(owner, ScriptInstance):
            self.heap.set(owner, {**owner.state, name: content})
            return
        self._attribute((*owner.path, name))
        self.heap.set(self._cells[(*owner.path, name)], {name: content})

    def _attribute(self, path: tuple[str, ...], class_name: str = "") -> Argument:
        cell = self._cells.get(path)
        if cell is None:
            found: Any = self._root
            for name in path:
                try:
                    found = getattr(found, name)
                except RuntimeError as error:
                    raise CaptureError(
                        f"the attribute {name!r} is of {class_name}, a class that Python does not"
                        " know here: import the module that defines it first"
                    ) from error
            if isinstance(found, torch.ScriptObject):
                owners = [name for name in path if name != "_packed_params"]
                return PackedParameters(without_prefix(".".join(owners)), found)
            if isinstance(found, torch.nn.Module):
                return _ModuleAt(path)
            # Not new: it was there before any block that asks for it first.
            cell = self._cells[path] = ScriptInstance(".".join(path))
            held = self._held_attribute(path, found)
            if class_name and not isinstance(held, Mutable):
                instance = ScriptInstance(class_name)
                instance.state = {
                    name: self._held_attribute((*path, name), item)
                    for name, item in vars(found).items()
                }
                held = instance
            self._held_before[path] = (held, copied(held))
            cell.state = {path[-1]: held}
        return cell.state[path[-1]]

    def _held_attribute(self, path: tuple[str, ...], found: Any) -> Argument:
        if isinstance(found, torch.Tensor):
            return self._parameter(".".join(path), found.detach())
        if isinstance(found, (list, tuple)):
            items = tuple(
                self._held_attribute((*path, str(i)), item) for i, item in enumerate(found)
            )
            return ScriptList(items) if isinstance(found, list) else items
        if isinstance(found, dict):
            return ScriptDict(
                {k: self._held_attribute((*path, str(k)), item) for k, item in found.items()}
            )
        return found

    def attributes_set(self) -> list[tuple[str, Argument, Argument]]:
        """What the program left in attributes of modules, if other than it found: the name, what
        it found, what it left."""
        found = []
        for path, cell in self._cells.items():
            (before, content), after = self._held_before[path], cell.state[path[-1]]
            if before is not after or not _holds_the_same(after, content):
                found.append((without_prefix(".".join(path)), before, after))
        return found

    def _parameter(self, path: str, tensor: torch.Tensor) -> Value | QuantizedTensor:
        if tensor.is_quantized:
            return self._quantized.constant(without_prefix(path), tensor)
        key = storage_key(tensor)
        if key not in self._by_storage:
            self._by_storage[key] = self._held(without_prefix(path), tensor)
        return self._by_storage[key]

    def _held(self, name: str, tensor: torch.Tensor) -> Value:
        """A parameter of the graph, by the name it is known under."""
        if name not in self.graph.parameters:
            self.graph.parameters[name] = Value(name, type_of(tensor), constant=tensor)
        return self.graph.parameters[name]

    def _construct_list(self, node: Any) -> None:
        self._set(node, self.lists.new(self._inputs(node)))

    def _construct_tuple(self, node: Any) -> None:
        self._set(node, tuple(self._inputs(node)))

    def _construct_dict(self, node: Any) -> None:
        inputs = self._inputs(node)
        entries = zip(inputs[::2], inputs[1::2], strict=True)
        self._set(node, self._calls.new_dict(entries))

    def _create_object(self, node: Any) -> None:
        self._set(node, self.heap.new(ScriptInstance(str(node.output().type()))))

    def _unpack(self, node: Any) -> None:
        (items,) = self._inputs(node)
        outputs = list(node.outputs())
        if isinstance(items, ScriptList):
            items = items.state
        if not isinstance(items, tuple):
            items = tuple(self.lists.at(items, index) for index in range(len(outputs)))
        if len(items) != len(outputs):
            raise CaptureError(f"{len(items)} values are unpacked into {len(outputs)} names")
        for output, item in zip(outputs, items, strict=True):
            self._env[output.debugName()] = item

    def _tuple_slice(self, node: Any) -> None:
        (items,) = self._inputs(node)
        self._set(node, items[node.i("beg") : node.i("end")])

    def _uninitialized(self, node: Any) -> None:
        self._set(node, UNINITIALIZED)

    def _raise(self, node: Any) -> None:
        message = self._inputs(node)[0]
        text = message if isinstance(message, str) else "an exception"
        raise ModelRaises(text, self._location)

    def _dtype(self, node: Any) -> None:
        (tensor,) = self._inputs(node)
        self._set(node, tensor.dtype)

    def _device(self, node: Any) -> None:
        self._set(node, torch.device("cpu"))

    def _layout(self, node: Any) -> None:
        self._set(node, torch.strided)

    def _is_parameter(self, node: Any) -> None:
        (tensor,) = self._inputs(node)
        self._set(node, self.graph.parameters.get(tensor.name) is tensor)

    def _grad_enabled(self, node: Any) -> None:
        """As in training: the fused kernels of torch.nn, which only PyTorch has, ask for it."""
        self._set(node, True)

    def _is_contiguous(self, node: Any) -> None:
        self.note(
            f"the file knows no strides: is_contiguous() at {self._location.describe()} is true"
        )
        self._set(node, True)

    def _same(self, node: Any) -> None:
        self._set(node, self._inputs(node)[0])

    def _is_instance(self, node: Any) -> None:
        (argument,) = self._inputs(node)
        types = node.tys("types")
        holds = is_instance(argument, types)
        if isinstance(argument, MaybeNone) and holds != is_instance(None, types):
            present = argument.present
            self._set(node, present if holds else self._calls.negated(present))
            return
        self._set(node, holds)

    def _enter(self, node: Any) -> None:
        """Of a context that changes how PyTorch computes, not what."""
        (context,) = self._inputs(node)
        if context.class_name not in _CONTEXTS_WITHOUT_EFFECT:
            raise CaptureError(f"`with` of {context.class_name} has no ONNX form")
        self._set(node, None)

    def _fork(self, node: Any) -> None:
        """What would run beside the rest, in its place."""
        body = _torch_private.inlined_subgraph(node)
        outer, given = self._env, self._inputs(node)
        self._env = {i.debugName(): a for i, a in zip(body.inputs(), given, strict=True)}
        results = self.read_block(list(body.nodes()), list(body.outputs()))
        self._env = outer
        self._set(node, results[0])

    def _number_to_tensor(self, node: Any) -> None:
        number = self._inputs(node)[0]
        if isinstance(number, ComputedNumber):
            self._set(node, number.value)
            return
        made = self._scalars.tensor_of(number, self._location)
        self.graph.nodes.append(made)
        self._set(node, made.outputs[0])

    def _new_tensor(self, node: Any) -> None:
        """torch.tensor() in a scripted function: an operator that exists in TorchScript alone."""
        data, dtype = self._inputs(node)[:2]
        wanted = None if dtype is None else _dtype_of(dtype)
        if isinstance(data, Value):
            made = self.emit(torch.ops.aten.clone.default, [data])[0]
        elif isinstance(data, (ScriptList, tuple)):
            made = self._tensor_of_list(data, wanted)
        elif is_number(data):
            made = self.numbers.as_tensor(data)
            if isinstance(data, ComputedNumber):
                # The number stays what it is when the tensor is written.
                made = self.emit(torch.ops.aten.clone.default, [made])[0]
        else:
            raise _no_form(node.kind(), self._location)
        if wanted is None and made.dtype == torch.float64 and not isinstance(data, Value):
            wanted = torch.get_default_dtype()
        if wanted is not None and made.dtype != wanted:
            made = self.emit(torch.ops.aten._to_copy.default, [made], dtype=wanted)[0]
        self._set(node, made)

    def _as_tensor_of(self, node: Any) -> None:
        """torch.as_tensor(): a tensor is itself where its dtype is the one asked for."""
        data, dtype = self._inputs(node)[:2]
        if isinstance(data, Value) and (dtype is None or _dtype_of(dtype) == data.dtype):
            self._set(node, data)
        else:
            self._new_tensor(node)

    def _tensor_of_list(self, data: Argument, dtype: torch.dtype | None) -> Value:
        items = data.state if isinstance(data, ScriptList) else data
        if isinstance(items, DynamicItems):
            return self.emit(torch.ops.aten.clone.default, [items.content])[0]
        if is_constant(data):
            tensor = torch.tensor(_python(data), dtype=dtype)
            return Value("numbers", type_of(tensor), constant=tensor)
        if any(isinstance(item, (ScriptList, tuple)) for item in items):
            rows = [self._tensor_of_list(item, dtype) for item in items]
            return self.emit(torch.ops.aten.stack.default, [rows, 0])[0]
        return self.lists.numbers_tensor(items)

    def _autograd_function(self, node: Any) -> None:
        """The operators that ran inside the forward of a torch.autograd.Function, in its place; or
        one operator for the call."""
        whole = operator_in_torchscript(node, [self._plain(a) for a in self._inputs(node)])
        if whole is not None:
            function, operands = whole
            self._set(node, self.wrapped(function.result(self.emit(function.op, operands))))
            return
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
        self._set(node, tuple(results) if gives_tuple else results[0])

    def location(self, node: Any) -> SourceLocation:
        path, calls = self._running.of(node)
        place = from_source_range(node.sourceRange())
        if not place[0]:  # of lists, tuples and dicts TorchScript keeps no place: who takes them
            users = (use.user for output in node.outputs() for use in output.uses())
            places = (from_source_range(user.sourceRange()) for user in users)
            place = next(filter(lambda found: found[0], places), place)
        return self._modules.location(path, place, calls)


_READERS: dict[str, Callable[[GraphReader, Any], None]] = {
    "prim::Constant": GraphReader._constant,
    "prim::GetAttr": GraphReader._get_attribute,
    "prim::SetAttr": GraphReader._set_attribute,
    "prim::ListConstruct": GraphReader._construct_list,
    "prim::TupleConstruct": GraphReader._construct_tuple,
    "prim::DictConstruct": GraphReader._construct_dict,
    "prim::CreateObject": GraphReader._create_object,
    "prim::ListUnpack": GraphReader._unpack,
    "prim::TupleUnpack": GraphReader._unpack,
    "prim::TupleSlice": GraphReader._tuple_slice,
    "prim::Loop": GraphReader._read_loop,
    "prim::Uninitialized": GraphReader._uninitialized,
    "prim::RaiseException": GraphReader._raise,
    "prim::isinstance": GraphReader._is_instance,
    "prim::Enter": GraphReader._enter,
    "prim::Exit": GraphReader._enter,
    "prim::fork": GraphReader._fork,
    "aten::wait": GraphReader._same,
    "aten::cpu": GraphReader._same,
    "aten::cuda": GraphReader._same,
    "aten::is_contiguous": GraphReader._is_contiguous,
    "prim::dtype": GraphReader._dtype,
    "prim::device": GraphReader._device,
    "prim::layout": GraphReader._layout,
    "prim::requires_grad": GraphReader._is_parameter,
    "aten::is_grad_enabled": GraphReader._grad_enabled,
    "prim::data": GraphReader._same,
    "prim::NumToTensor": GraphReader._number_to_tensor,
    "prim::PythonOp": GraphReader._autograd_function,
    "aten::tensor": GraphReader._new_tensor,
    "aten::as_tensor": GraphReader._as_tensor_of,
}
_READ_NUMBERS = frozenset(
    f"aten::{name}"
    for name in (
        "Int", "Float", "Bool", "IntImplicit", "FloatImplicit", "ScalarImplicit", "item",
        "is_nonzero", "_local_scalar_dense",
    )
)  # fmt: skip
_CONTEXTS_WITHOUT_EFFECT = frozenset(
    f"__torch__.torch.autograd.{name}"
    for name in ("grad_mode.no_grad", "grad_mode.enable_grad", "profiler.record_function")
)
_NUMBERS = {"IntType": torch.int64, "FloatType": torch.float64, "BoolType": torch.bool}


def _holds_the_same(one: Argument, other: Argument) -> bool:
    """Of an object and an earlier copy of it."""
    if isinstance(one, Mutable) and isinstance(other, Mutable):
        return _holds_the_same(one.held, other.held)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_holds_the_same(one[k], other[k]) for k in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_holds_the_same, one, other))
    return one is other


def number_dtype_of(operands: Sequence[Argument]) -> torch.dtype:
    """Of a Scalar, which TorchScript leaves open."""
    kinds = [number_dtype(o) for o in operands]
    return torch.float64 if torch.float64 in kinds else kinds[0]


def _computed_argument(op: Any, arguments: dict[str, Argument]) -> str | None:
    """The argument that PyTorch has as a plain int or float, and that is computed."""
    for parameter in op._schema.arguments:
        kind = parameter.real_type
        while kind.kind() in ("OptionalType", "ListType"):
            kind = kind.getElementType()
        if kind.kind() in ("IntType", "FloatType") and is_symbolic(arguments.get(parameter.name)):
            return str(parameter.name)
    return None


def _unpacked(node: Any) -> int | None:
    """The number of variables that its result is at once unpacked into."""
    uses = list(node.output().uses()) if len(list(node.outputs())) == 1 else []
    if len(uses) != 1 or uses[0].user.kind() != "prim::ListUnpack":
        return None
    return len(list(uses[0].user.outputs()))


def _dtype_of(dtype: Any) -> torch.dtype:
    return dtype if isinstance(dtype, torch.dtype) else dtype_from_number(dtype)


def _python(argument: Argument) -> Any:
    """A known value as Python has it."""
    if isinstance(argument, ScriptList):
        assert isinstance(argument.state, tuple)
        return [_python(a) for a in argument.state]
    if isinstance(argument, ScriptDict):
        return {k: _python(v) for k, v in argument.state.items()}
    if isinstance(argument, tuple):
        return tuple(_python(a) for a in argument)
    return argument


def _different_types(reason: CannotJoin, location: SourceLocation) -> CaptureError:
    return CaptureError(
        format_message(
            f"the branches of an if leave different types: {reason}",
            [("at", location.describe())],
        )
    )


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
