"""Nodes written into the graph, with the types that PyTorch infers or a trace recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import SizeCondition
from sardonyx.aten.control_flow import LOOP
from sardonyx.aten.graph import (
    SCRIPT,
    Argument,
    AtenGraph,
    Block,
    Dim,
    Node,
    SourceLocation,
    SymbolSource,
    Value,
    is_symbolic,
    values_in,
)
from sardonyx.aten.schema import bind
from sardonyx.aten.shape_rules.indexing import take_no_bound_for_granted
from sardonyx.aten.size_printing import in_callers_names
from sardonyx.aten.type_inference import TypeInference, type_of
from sardonyx.capture.quantized.reader import LoopBody
from sardonyx.capture.torchscript.control_flow.joined_types import TensorLeaf, leaf_type
from sardonyx.capture.torchscript.errors import ModelRaises
from sardonyx.capture.torchscript.types.scalars import ScalarTracker
from sardonyx.errors import CaptureError

_OF_PYTORCH = frozenset({"aten", "prims", "quantized", "quantized_decomposed", "_quantized"})
"""Namespaces whose operators all have fake kernels, or are known not to be able to have one."""


def node_inputs(node: Any) -> list[Any]:
    """Of a TorchScript node. The iterators that PyTorch has cost as much as reading the node."""
    return [node.inputsAt(index) for index in range(node.inputsSize())]


def node_outputs(node: Any) -> list[Any]:
    return [node.outputsAt(index) for index in range(node.outputsSize())]


class NodeWriter:
    """Writes where `graph.nodes` points to: the graph, or the block that is being read."""

    def __init__(self, into: AtenGraph | None = None, mode: Any = None) -> None:
        """`into`: the graph to write, whose sizes are those of `mode`; else a new one."""
        self.inference = TypeInference(mode, on_host=mode is None)
        take_no_bound_for_granted(self.inference.mode)
        self.graph = AtenGraph(captured_by=SCRIPT) if into is None else into
        self._outermost = self.graph.nodes
        self.scalars = ScalarTracker(self.inference)
        self.here = SourceLocation()
        self.notes: list[str] = []
        self._names = 0
        self._named_sizes: dict[str, Any] = {}
        self.fixed: dict[Any, tuple[int, SourceLocation]] = {}
        """Size symbols that an operator turned into a number, and where."""
        self.conditions: list[SizeCondition] = []
        """Conditions that operators checked on the sizes of their inputs."""

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

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
        for known_input in self.graph.inputs if dynamic else ():
            known_input.type = type_of(self.inference.fake_of(known_input))

    @property
    def example_sizes(self) -> dict[sympy.Symbol, int]:
        return _torch_private.example_sizes(self.inference.mode)

    def writing_into(self, block: Block) -> AbstractContextManager[None]:
        """Nodes written meanwhile go to the end of the block."""
        return _torch_private.attributes_set(self.graph, nodes=block.nodes)

    def emit(self, op: Any, args: Sequence[Argument], **kwargs: Argument) -> list[Value]:
        """The results of an operator that is no node of the program."""
        arguments = bind(op, args, kwargs)
        if op is torch.ops.aten.scalar_tensor.default:
            number = self.new_value("number", arguments["dtype"], ())
            return self._added(Node(op, arguments, [number], self.here))
        return self._added(self._inferred(op, arguments))

    def call(self, op: Any, *args: Argument, **kwargs: Argument) -> Value:
        """The result of an operator that gives one tensor."""
        return self.emit(op, args, **kwargs)[0]

    def _added(self, node: Node) -> list[Value]:
        self.graph.nodes.append(node)
        self.scalars.follow(node)
        return node.outputs

    def emit_typed(
        self,
        op: Any,
        args: Sequence[Argument],
        dtype: torch.dtype,
        dims: Sequence[Dim | None],
        *,
        is_sequence: bool = False,
    ) -> Value:
        """A call whose type PyTorch does not say; unknown dims become symbols."""
        value = self.new_value("item", dtype, dims, is_sequence)
        self.graph.nodes.append(Node(op, bind(op, args), [value], self.here))
        return value

    def new_value(
        self,
        name: str,
        dtype: torch.dtype,
        dims: Sequence[Dim | None] | None,
        is_sequence: bool = False,
    ) -> Value:
        """Unknown dims become symbols of their own; without dims it has no known rank."""
        self._names += 1
        unknown = [] if is_sequence else [a for a, d in enumerate(dims or ()) if d is None]
        sizes = list(dims or ())
        for axis in unknown:
            size = _torch_private.new_data_dependent_length(self.inference.mode)
            sizes[axis] = _torch_private.dim_of(size)
        kind = leaf_type(dtype, None if dims is None else tuple(sizes), is_sequence)
        value = Value(f"{name}_{self._names}", kind)
        for axis in unknown:
            self.graph.symbols[value.shape[axis]] = SymbolSource(value, axis)
        return value

    def filler(self, leaf: TensorLeaf) -> Value:
        """A tensor that nothing reads, of the sizes that the file states: runtimes plan by them."""
        sizes = [1 if d is None else _at_any_sizes(d) for d in leaf.dims or ()]
        return self.call(torch.ops.aten.full.default, sizes, 0, dtype=leaf.dtype)

    def _loop(self, count: Dim, carried: Sequence[Value], body: LoopBody) -> list[Value]:
        """A loop that the program does not have itself: its carried and its stacked results."""
        block = Block([self.new_value("iteration", torch.int64, ())])
        block.inputs += [self.new_value("carried", v.dtype, v.shape) for v in carried]
        with self.writing_into(block):
            kept, stacked = body(block.inputs[0], block.inputs[1:])
        block.outputs = [None, *kept, *stacked]
        results = [self.new_value("result", v.dtype, v.shape) for v in carried]
        results += [self.new_value("result", v.dtype, (count, *v.shape)) for v in stacked]
        arguments = bind(LOOP, [count, None, list(carried)])
        self.graph.nodes.append(Node(LOOP, arguments, results, self.here, blocks=[block]))
        return results

    def _typed(self, node: Any, op: Any, arguments: dict[str, Argument]) -> Node:
        """A call of the program. An operator that has no fake kernel has the types that a trace
        saw; its sizes may be others where those of its arguments may be."""
        try:
            return self._inferred(op, arguments)
        except CaptureError:
            outputs = node_outputs(node)
            given = list(arguments.values())
            is_open = is_symbolic([*given, *(list(v.shape) for v in values_in(given))])
            is_known = all(o.isCompleteTensor() for o in outputs)
            if not is_known or (is_open and op.namespace in _OF_PYTORCH):
                raise
        sizes = [o.type().sizes() for o in outputs]
        if not is_open and op.namespace not in _OF_PYTORCH and any(sizes):
            self.note(
                f"{op._schema.name} has no fake kernel that tells the sizes of its results: they"
                " are taken to be those of the example (torch.library.register_fake adds one)"
            )
        values = [
            self.new_value("traced", o.type().dtype(), [None if is_open else d for d in dims])
            for o, dims in zip(outputs, sizes, strict=True)
        ]
        return Node(op, arguments, values, self.here)

    def _inferred(self, op: Any, arguments: dict[str, Argument]) -> Node:
        location = self.here
        known = _torch_private.guard_count(self.inference.mode)
        try:
            with self._in_its_block():
                result = self.inference.run(op, arguments)
        except Exception as error:
            computed = _computed_argument(op, arguments)
            if computed is not None:
                raise CaptureError(
                    f"{op._schema.name} is called with a `{computed}` that is computed at run"
                    " time, and has to be known",
                    [("at", location.describe())],
                ) from error
            if isinstance(error, IndexError):
                if _is_select_of_open_dim(op, arguments):
                    return self._selected(op, arguments)
                # The dim does not exist, whatever the sizes are.
                raise ModelRaises(str(error).strip().splitlines()[0], location) from error
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            sizes = [list(v.shape) for v in values_in(list(arguments.values())) if v.has_shape]
            why = "cannot take the dynamic sizes" if is_symbolic(sizes) else "fails"
            raise CaptureError(
                "an operator of the program"
                f" {why}: {in_callers_names(said, self.graph.symbol_names)}",
                [("at", location.describe())],
            ) from error
        for symbol, size in _torch_private.fixed_symbols(self.inference.mode).items():
            self.fixed.setdefault(symbol, (size, location))
        place = (location.file, location.line, location.text)
        for guard in _torch_private.guards(self.inference.mode, start=known):
            self.conditions.append(SizeCondition(guard.expression, place, False))
        return Node(op, arguments, self.inference.values(self.graph, result), location)

    def _selected(self, op: Any, arguments: dict[str, Argument]) -> Node:
        """`x[5]` of a dynamic dim, which the example is too short for: PyTorch does not check an
        index that is computed."""
        number = torch.tensor(arguments["index"])
        index = Value("index", type_of(number), constant=number)
        symbol = _torch_private.dim_of(_torch_private.new_number(self.inference.mode, torch.int64))
        self.graph.symbols[symbol] = SymbolSource(index, None)
        return self._inferred(op, {**arguments, "index": symbol})

    def _in_its_block(self) -> AbstractContextManager[None]:
        if self.graph.nodes is self._outermost:
            return contextlib.nullcontext()
        return _torch_private.without_replacements(self.inference.mode, but_numbers=True)


def _computed_argument(op: Any, arguments: dict[str, Argument]) -> str | None:
    """The argument that PyTorch has as a plain int or float, and that is computed."""
    for parameter in op._schema.arguments:
        kind = parameter.real_type
        while kind.kind() in ("OptionalType", "ListType"):
            kind = kind.getElementType()
        if kind.kind() in ("IntType", "FloatType") and is_symbolic(arguments.get(parameter.name)):
            return str(parameter.name)
    return None


def _is_select_of_open_dim(op: Any, arguments: dict[str, Argument]) -> bool:
    if op is not torch.ops.aten.select.int:
        return False
    shape, dim = arguments["self"].shape, arguments["dim"]
    is_dim = -len(shape) <= dim < len(shape)
    return is_dim and isinstance(shape[dim], sympy.Basic) and isinstance(arguments["index"], int)


_DIVISIONS = frozenset({"FloorDiv", "CleanDiv", "Mod", "PythonMod", "IntTrueDiv"})


def _at_any_sizes(dim: Dim) -> Dim:
    """A dim that can be computed where no tensor has it: `n - 3` of two, `12 // n` of none."""
    if isinstance(dim, int):
        return dim
    dim = dim.replace(
        lambda e: type(e).__name__ in _DIVISIONS and not e.args[1].is_number,
        lambda e: e.func(e.args[0], sympy.Max(1, e.args[1])),
    )
    return dim if dim.is_nonnegative else sympy.Max(0, dim)
