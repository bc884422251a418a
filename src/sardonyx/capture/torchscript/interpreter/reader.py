"""A TorchScript graph read into an AtenGraph, its types inferred on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Argument, AtenGraph, Block, SourceLocation, Value
from sardonyx.aten.location import ModuleNames, from_source_range
from sardonyx.aten.module_calls import RunningCalls
from sardonyx.aten.pytree import QuantizedParts
from sardonyx.aten.storage import storage_key
from sardonyx.aten.type_inference import type_of
from sardonyx.capture.autograd_functions import operator_in_torchscript
from sardonyx.capture.flat_model import without_prefix
from sardonyx.capture.function_overrides.data_checks import is_answered_no
from sardonyx.capture.quantized.reader import QuantizedReader
from sardonyx.capture.quantized.tensor import QuantizedTensor
from sardonyx.capture.side_effects.tensor_state import state_tensors
from sardonyx.capture.symbolic_shapes.rank_guards import may_be_one, squeezed_axes
from sardonyx.capture.torchscript.containers.lists import ScriptLists
from sardonyx.capture.torchscript.control_flow.branches import Readings, ScriptBranches
from sardonyx.capture.torchscript.control_flow.conform import Conform
from sardonyx.capture.torchscript.control_flow.loops import Body, Loop, ScriptLoops
from sardonyx.capture.torchscript.errors import (
    BranchesDiffer,
    CannotJoin,
    ModelRaises,
    ScriptRefusal,
)
from sardonyx.capture.torchscript.interpreter.attributes import ModuleAt, ModuleAttributes
from sardonyx.capture.torchscript.interpreter.calls import ScriptCalls
from sardonyx.capture.torchscript.interpreter.constructs import CONSTRUCTS
from sardonyx.capture.torchscript.interpreter.nodes import NodeWriter, node_inputs, node_outputs
from sardonyx.capture.torchscript.interpreter.operators import OperatorCalls
from sardonyx.capture.torchscript.interpreter.shape_writes import use_view_after
from sardonyx.capture.torchscript.types.numbers import ScriptNumbers
from sardonyx.capture.torchscript.types.values import (
    Heap,
    ScriptDict,
    ScriptInstance,
    as_python,
    is_constant,
)
from sardonyx.errors import CaptureError

Rest = Callable[[], list[Argument]]
"""Reads the rest of the program."""
_MOST_COPIES = 6
"""The depth of nested branches that each have a copy of the rest of the program."""
_WITHOUT_EFFECT = frozenset({"aten::warn", "prim::Print"})


class GraphReader(NodeWriter):
    def __init__(
        self,
        root: torch.nn.Module,
        modules: ModuleNames,
        into: AtenGraph | None = None,
        mode: Any = None,
    ) -> None:
        super().__init__(into, mode)
        self._modules = modules
        self._running = RunningCalls(modules.classes)
        self.heap = Heap()
        self.numbers = ScriptNumbers(self.call, self.graph, self.inference)
        self.lists = ScriptLists(self)
        self.conform = Conform(self)
        self.branches = ScriptBranches(self)
        self.loops = ScriptLoops(self)
        self.attributes = ModuleAttributes(root, self.heap, self._parameter)
        self._quantized = QuantizedReader(
            self.emit, self._held, self._loop, lambda: self.example_sizes
        )
        self.calls = ScriptCalls(self)
        self._operators = OperatorCalls(self, self.calls, self._quantized)
        self.env: dict[str, Argument] = {}
        self._copies = 0
        """Of the rest of the program, around the block that is being read."""
        self._by_storage: dict[Any, Value] = {}
        state = [(path, t) for path, t in state_tensors(root) if t.layout == torch.strided]
        self._paths = {storage_key(t): path for path, t in state}

    def read_program(self, graph: Any, arguments: dict[str, Argument]) -> Argument:
        """The result of a scripted function or method. The module is one of the arguments."""
        for source, argument in zip(graph.inputs(), arguments.values(), strict=True):
            self.env[source.debugName()] = argument
        try:
            (result,) = self.read_block(list(graph.nodes()), list(graph.outputs()), at_end=True)
        except ModelRaises as error:
            hint = _NOT_SCRIPTED if "annotated to be ignored" in str(error) else ""
            details = [("at", error.place()), ("try", hint)]
            raise CaptureError(f"the model raises: {error}", details) from error
        except CannotJoin as reason:
            refusal = ScriptRefusal(f"values of different types meet: {reason}", reason.hint)
            raise refusal.located(self.here) from reason
        except ScriptRefusal as refusal:
            raise refusal.located(self.here) from refusal.__cause__
        return result

    # -- blocks ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def block(self) -> Iterator[Block]:
        made = Block()
        with self.writing_into(made), self.scalars.inside_a_block():
            yield made

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        nodes, notes = self.graph.nodes, self.notes
        counts = len(nodes), len(notes)
        try:
            with self.heap.attempt():
                yield
        except BaseException:
            del nodes[counts[0] :], notes[counts[1] :]
            raise

    def read_block(
        self,
        nodes: Sequence[Any],
        outputs: Sequence[Any],
        then: Callable[[list[Argument]], list[Argument]] | None = None,
        *,
        at_end: bool = False,
    ) -> list[Argument]:
        """Reads nodes into the current block. Returns the values of the outputs, or the result of
        `then`, which reads more after them. `at_end`: the program ends there."""
        for place, node in enumerate(nodes):
            kind = node.kind()
            rest = partial(self.read_block, nodes[place + 1 :], outputs, then, at_end=at_end)
            if kind in ("aten::squeeze", "aten::squeeze_") and (axes := self._open_axes(node)):
                return self._read_squeezed(node, self.inputs_of(node)[0], axes, rest, at_end)
            try:
                if kind == "prim::If":
                    self._read_branch(node)
                else:
                    self._node(node)
            except CannotJoin as reason:
                if kind != "prim::If":
                    raise
                return self._read_rest_in_branches(node, reason, rest, at_end)
        results = [self.env[o.debugName()] for o in outputs]
        return results if then is None else then(results)

    def _read_branch(self, node: Any) -> None:
        (condition,) = self.inputs_of(node)
        readings = [partial(self._read_side, block) for block in node.blocks()]
        self.here = self.location(node)
        with self.attempt():
            results = self.branches.branch(condition, readings, self.here)
        self.set_outputs(node, results)

    def _read_side(
        self, block: Any, then: Callable[[list[Argument]], list[Argument]] | None = None, **at: bool
    ) -> list[Argument]:
        return self.read_block(list(block.nodes()), list(block.outputs()), then, **at)

    def _read_rest_in_branches(
        self, node: Any, reason: CannotJoin, rest: Rest, at_end: bool
    ) -> list[Argument]:
        """The rest of the program is read in each branch, where its types are known."""
        (condition,) = self.inputs_of(node)
        self.here = self.location(node)

        def go_on(results: list[Argument]) -> list[Argument]:
            self.set_outputs(node, results)
            return rest()

        readings = [
            partial(self._read_side, block, go_on, at_end=at_end) for block in node.blocks()
        ]
        return self._copied(condition, readings, reason, at_end)

    def _copied(
        self, condition: Argument, readings: Readings, reason: CannotJoin, at_end: bool
    ) -> list[Argument]:
        """The results of one of two readings of the rest of the program."""
        location, copies = self.here, int(self.branches.truth(condition) is None)
        if copies and self._copies >= _MOST_COPIES:
            raise BranchesDiffer(reason, location) from reason
        self._copies += copies
        try:
            return self.branches.branch(condition, readings, location, at_end=at_end)
        except CannotJoin as cannot:
            if at_end:
                raise BranchesDiffer(cannot, location) from cannot
            raise
        finally:
            self._copies -= copies

    def _open_axes(self, node: Any) -> list[int]:
        """The dims that a squeeze drops where they are 1, if that is open for one of them."""
        tensor, *dims = self.inputs_of(node)
        if not isinstance(tensor, Value) or not tensor.has_shape or not all(map(is_constant, dims)):
            return []
        axes = squeezed_axes(tensor.shape, as_python(dims[0]) if dims else None)
        return axes if any(may_be_one(tensor.shape[axis]) for axis in axes) else []

    def _read_squeezed(
        self, node: Any, tensor: Value, axes: list[int], rest: Rest, at_end: bool
    ) -> list[Argument]:
        """The rest of the program, read once for each rank that a squeeze may leave."""
        self.here = self.location(node)
        if not axes:
            if node.kind() == "aten::squeeze_":
                use_view_after(node)
            self.set(node, tensor)
            return rest()
        *axes, axis = axes

        def dropped() -> list[Argument]:
            view = self.emit(torch.ops.aten.select.int, [tensor, axis, 0])[0]
            return self._read_squeezed(node, view, axes, rest, at_end)

        is_one = self.numbers.compute("aten::eq", [tensor.shape[axis], 1], torch.bool)
        kept = partial(self._read_squeezed, node, tensor, axes, rest, at_end)
        reason = CannotJoin("squeeze drops a dim where its size is 1", "squeeze of static dims")
        return self._copied(is_one, [dropped, kept], reason, at_end)

    def _read_loop(self, node: Any) -> None:
        count, condition, *start = self.inputs_of(node)
        (block,) = node.blocks()
        body = partial(self._iteration, block)
        results = self.loops.loop(Loop(count, condition, start, body, self.here))
        self.set_outputs(node, results)

    def either(
        self, condition: Argument, one: Callable[[], Argument], other: Callable[[], Argument]
    ) -> Argument:
        """A branch that the program does not have itself."""
        readings = [lambda: [one()], lambda: [other()]]
        return self.branches.branch(condition, readings, self.here)[0]

    def repeat(
        self,
        count: Argument,
        start: Sequence[Argument],
        body: Body,
    ) -> list[Argument]:
        """A loop that the program does not have itself; `body` returns the new carried values."""

        def going_on(i: Argument, carried: Sequence[Argument]) -> list[Argument]:
            return [True, *body(i, carried)]

        return self.loops.loop(Loop(count, True, start, going_on, self.here))

    def _iteration(
        self, block: Any, place: Argument, carried: Sequence[Argument]
    ) -> list[Argument]:
        for source, argument in zip(block.inputs(), (place, *carried), strict=True):
            self.env[source.debugName()] = argument
        return self.read_block(list(block.nodes()), list(block.outputs()))

    # -- nodes -----------------------------------------------------------------------------------

    def _node(self, node: Any) -> None:
        kind = node.kind()
        if kind == "prim::Constant":
            output = node.output()
            value = output.toIValue()
            if type(value) in _PLAIN:
                self.env[output.debugName()] = value
                return
        before, self.here = self.here, self.location(node)
        if not self.here.file_line:  # as in a return statement: the line before says more than none
            self.here = replace(self.here, file=before.file, line=before.line, text=before.text)
        try:
            self._read_node(kind, node)
        except ModelRaises as error:
            error.location = error.location or self.here
            raise
        except ScriptRefusal as refusal:
            raise refusal.located(self.here) from refusal

    def _read_node(self, kind: str, node: Any) -> None:
        reader = _READERS.get(kind)
        if reader is not None:
            reader(self, node)
            return
        if kind in _WITHOUT_EFFECT:
            return
        if kind == "aten::Bool" and is_answered_no(self.here):
            self.set(node, False)
            return
        self.set_outputs(node, self._operators.results(node, self.inputs_of(node)))

    def emit_node(self, node: Any, op: Any, arguments: dict[str, Argument]) -> list[Value]:
        return self._added(self._typed(node, op, arguments))

    def inputs_of(self, node: Any) -> list[Argument]:
        return [self.env[i.debugName()] for i in node_inputs(node)]

    def set(self, node: Any, result: Argument) -> None:
        self.env[node.output().debugName()] = result

    def set_outputs(self, node: Any, results: Sequence[Argument]) -> None:
        for output, result in zip(node_outputs(node), results, strict=True):
            self.env[output.debugName()] = result

    def wrapped(self, found: Any) -> Argument:
        """A Python value as the program's variables hold it."""
        if isinstance(found, list):
            return self.lists.new([self.wrapped(item) for item in found])
        if isinstance(found, tuple):
            return tuple(self.wrapped(item) for item in found)
        if isinstance(found, dict):
            return self.heap.new(ScriptDict({k: self.wrapped(v) for k, v in found.items()}))
        if isinstance(found, QuantizedParts):
            return self._quantized.on_grid(found.integers, found.grid)
        return found

    # -- constants, attributes and subgraphs -----------------------------------------------------

    def _constant(self, node: Any) -> None:
        value, name = node.output().toIValue(), node.output().debugName()
        if not isinstance(value, torch.Tensor):
            self.set(node, self.wrapped(value))
        elif value.is_quantized:
            self.set(node, self._quantized.constant(name, value))
        elif (path := self._paths.get(storage_key(value))) is not None:
            self.set(node, self._parameter(path, value.detach()))
        else:
            self.set(node, Value(name, type_of(value), constant=value.detach()))

    def _get_attribute(self, node: Any) -> None:
        (owner,) = self.inputs_of(node)
        name = node.s("name")
        if isinstance(owner, ScriptInstance):
            self.set(node, owner.state[name])
        else:
            kind = node.output().type()
            class_name = kind.qualified_name() if kind.kind() == "ClassType" else ""
            self.set(node, self.attributes.get((*owner.path, name), class_name))

    def _set_attribute(self, node: Any) -> None:
        owner, content = self.inputs_of(node)
        name = node.s("name")
        if isinstance(owner, ScriptInstance):
            self.heap.set(owner, {**owner.state, name: content})
            return
        if isinstance(content, ModuleAt):
            raise ScriptRefusal(f"the script sets its module {name} to another one")
        self.attributes.set((*owner.path, name), content)

    def _parameter(self, path: str, tensor: torch.Tensor) -> Value | QuantizedTensor:
        if tensor.is_quantized:
            return self._quantized.constant(without_prefix(path), tensor)
        if tensor.layout != torch.strided:
            raise ScriptRefusal(f"a {tensor.layout} tensor cannot be recorded")
        key = storage_key(tensor)
        if key not in self._by_storage:
            self._by_storage[key] = self._held(without_prefix(path), tensor)
        return self._by_storage[key]

    def _held(self, name: str, tensor: torch.Tensor) -> Value:
        """A parameter of the graph, by the name it is known under."""
        if name not in self.graph.parameters:
            self.graph.parameters[name] = Value(name, type_of(tensor), constant=tensor)
        return self.graph.parameters[name]

    def _fork(self, node: Any) -> None:
        """A task that PyTorch would run asynchronously, read in its place."""
        results = self._read_graph(_torch_private.inlined_subgraph(node), self.inputs_of(node))
        self.set(node, results[0])

    def _autograd_function(self, node: Any) -> None:
        """The operators that ran inside the forward of a torch.autograd.Function, in its place; or
        one operator for the call."""
        operands = self.inputs_of(node)
        whole = operator_in_torchscript(node, [self._operators.plain(a) for a in operands])
        if whole is not None:
            function, given = whole
            self.set(node, self.wrapped(function.result(self.emit(function.op, given))))
            return
        if not node.hasAttribute("Subgraph"):
            raise ScriptRefusal(
                f"the script calls {node.pyname()} in Python, which @torch.jit.ignore leaves there",
                _NOT_SCRIPTED,
            )
        results = self._read_graph(node.g("Subgraph"), operands)
        gives_tuple = node.output().type().kind() == "TupleType"
        self.set(node, tuple(results) if gives_tuple else results[0])

    def _read_graph(self, graph: Any, given: Sequence[Argument]) -> list[Argument]:
        """The results of another graph, whose values have their own names."""
        env = {i.debugName(): a for i, a in zip(graph.inputs(), given, strict=True)}
        with _torch_private.attributes_set(self, env=env):
            return self.read_block(list(graph.nodes()), list(graph.outputs()))

    def location(self, node: Any) -> SourceLocation:
        path, calls = self._running.of(node)
        place = from_source_range(node.sourceRange())
        if not place[0]:  # constructions of lists, tuples and dicts have no place: take a user's
            users = (use.user for output in node_outputs(node) for use in output.uses())
            places = (from_source_range(user.sourceRange()) for user in users)
            place = next(filter(lambda found: found[0], places), place)
        return self._modules.location(path, place, calls)


_READERS: dict[str, Callable[[GraphReader, Any], None]] = {
    **CONSTRUCTS,
    "prim::Constant": GraphReader._constant,
    "prim::GetAttr": GraphReader._get_attribute,
    "prim::SetAttr": GraphReader._set_attribute,
    "prim::Loop": GraphReader._read_loop,
    "prim::fork": GraphReader._fork,
    "prim::PythonOp": GraphReader._autograd_function,
}
_NOT_SCRIPTED = "the model as it is before torch.jit.script, or the function without its decorator"
_PLAIN = frozenset((type(None), bool, int, float, str))
