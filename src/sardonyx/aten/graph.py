"""AtenGraph: the IR that every capture produces and the lowering reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sympy
import torch

from sardonyx._torch_private import OpOverload

Dim: TypeAlias = int | sympy.Expr
"""A size: a number, or an expression over the graph's size symbols."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where in the user's program a node comes from."""

    module_path: str = ""
    class_path: str = ""
    file: str = ""
    line: int = 0
    text: str = ""
    calls: tuple[str, ...] = field(default=(), compare=False)
    """The calls of modules that were running, outermost first: `layers.0.linear@1` is the second
    call of that module."""

    @property
    def file_line(self) -> str:
        return f"{self.file}:{self.line}" if self.file else ""

    def describe(self) -> str:
        """`encoder.head · my_model.py:57   h = torch.histc(x, bins=10)`"""
        place = " · ".join(p for p in (self.module_path or "(the model)", self.file_line) if p)
        return f"{place}   {self.text}" if self.text else place


UNKNOWN_LOCATION = SourceLocation()
READS_A_NUMBER = torch.ops.aten._local_scalar_dense.default
"""Marks, until functionalization, where a number was read from a tensor: later writes to the tensor
do not change the number."""


@dataclass(frozen=True, slots=True)
class TensorType:
    dtype: torch.dtype
    shape: tuple[Dim, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        dims = ", ".join(str(d) for d in self.shape)
        return f"{str(self.dtype).removeprefix('torch.')}[{dims}]"


@dataclass(frozen=True, slots=True)
class SequenceType(TensorType):
    """A list of tensors whose length is known at run time. Dtype and shape are those of each item;
    a dim in which the items differ is None."""

    def __str__(self) -> str:
        return f"list of {TensorType.__str__(self)}"


@dataclass(frozen=True, slots=True)
class UnrankedType(TensorType):
    """A tensor whose rank depends on the branch that was taken; its `shape` is meaningless. Only
    outputs of the graph have this type."""

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')}[...]"


@dataclass(slots=True, eq=False, repr=False)
class Value:
    """A tensor in the graph, or a list of tensors. `fake` is its fake tensor where one was made."""

    name: str
    type: TensorType
    fake: torch.Tensor | None = field(default=None, kw_only=True)
    constant: torch.Tensor | None = field(default=None, kw_only=True)
    producer: Node | None = field(default=None, init=False)

    @property
    def dtype(self) -> torch.dtype:
        return self.type.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.type.shape

    @property
    def is_sequence(self) -> bool:
        return isinstance(self.type, SequenceType)

    @property
    def has_shape(self) -> bool:
        return not isinstance(self.type, (SequenceType, UnrankedType))

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


Argument: TypeAlias = Any
"""A bound argument: Value, number, sympy expression, str, dtype, device, None, or a list."""


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One ATen call: its overload, its arguments by schema name, its results."""

    op: OpOverload
    arguments: dict[str, Argument]
    outputs: list[Value]
    location: SourceLocation = UNKNOWN_LOCATION
    blocks: list[Block] = field(default_factory=list)

    def __post_init__(self) -> None:
        for output in self.outputs:
            output.producer = self

    @property
    def name(self) -> str:
        """`aten::add.Tensor`; the default overload has no suffix."""
        return operator_name(self.op)

    @property
    def display_name(self) -> str:
        """The name in messages: of the class for a `torch.autograd.Function`, of the operator for
        one form of its calls."""
        namespace, _, rest = self.name.partition("::")
        if namespace not in (FUNCTIONS_NAMESPACE, KEPT_NAMESPACE):
            return self.name
        name = FUNCTION_FORM.split(rest)[0]
        return name if namespace == FUNCTIONS_NAMESPACE else name.replace("__", "::", 1)

    def inputs(self) -> Iterator[Value]:
        return values_in(list(self.arguments.values()))

    def describe_inputs(self) -> str:
        return ", ".join(f"{k}: {_describe(v)}" for k, v in self.arguments.items())

    def __repr__(self) -> str:
        outputs = ", ".join(map(repr, self.outputs))
        return f"{outputs} = {self.display_name}({self.describe_inputs()})"


@dataclass(slots=True)
class Block:
    """A body of nodes with its own inputs and outputs; the graph itself is one."""

    inputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Argument] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SymbolSource:
    """Where a size symbol is read at run time: a dim of a value, or a 0-d integer value itself."""

    value: Value
    axis: int | None


@dataclass(slots=True)
class AtenGraph(Block):
    """The main block, with parameters, size symbols and mutations."""

    parameters: dict[str, Value] = field(default_factory=dict)
    """Parameters, buffers and lifted constants by state_dict name; each has its `constant`."""
    symbols: dict[sympy.Symbol, SymbolSource] = field(default_factory=dict)
    symbol_names: dict[sympy.Symbol, str] = field(default_factory=dict)
    """The user's names for size symbols."""
    mutated: list[Mutation] = field(default_factory=list)
    captured_by: str = ""

    def note_sizes(self, value: Value) -> None:
        """The size symbols of a value that have no source yet are read off it."""
        for axis, size in enumerate(value.shape):
            if isinstance(size, sympy.Symbol):
                self.symbols.setdefault(size, SymbolSource(value, axis))


@dataclass(frozen=True, slots=True)
class Mutation:
    """An input or buffer that the model writes, and its value at the end of the run."""

    name: str
    kind: str
    final: Value
    location: SourceLocation


SCRIPT = "script"
"""`captured_by` of graphs that were read, not run: the strides of tensors are not known."""
FUNCTIONS_NAMESPACE = "sardonyx_autograd"
"""The namespace of operators that stand for a `torch.autograd.Function`, one per form of calls."""
KEPT_NAMESPACE = "sardonyx_kept"
"""The namespace of operators that stand for another operator, one per form of calls."""
FUNCTION_FORM = re.compile(r"__form_(?=\d+$)")
"""Between the name of the function and the number of the form."""


def operator_name(op: OpOverload) -> str:
    name: str = op._schema.name
    overload: str = op._schema.overload_name
    return f"{name}.{overload}" if overload else name


def values_in(argument: Argument) -> Iterator[Value]:
    if isinstance(argument, Value):
        yield argument
    elif isinstance(argument, (list, tuple)):
        for item in argument:
            yield from values_in(item)


def is_symbolic(argument: Argument) -> bool:
    """Whether an argument is, or contains, a symbolic size."""
    if isinstance(argument, list):
        return any(map(is_symbolic, argument))
    return isinstance(argument, sympy.Basic)


def map_values(argument: Argument, replace: Callable[[Value], Argument]) -> Argument:
    """The argument with every Value in it replaced."""
    if isinstance(argument, Value):
        return replace(argument)
    if isinstance(argument, (list, tuple)):
        return [map_values(item, replace) for item in argument]
    return argument


def _describe(argument: Argument) -> str:
    if isinstance(argument, Value):
        return str(argument.type)
    if isinstance(argument, list):
        return "[" + ", ".join(_describe(item) for item in argument) + "]"
    return str(argument)


@dataclass(frozen=True)
class RecordedGraph:
    """The model as it was recorded; prints one call per line."""

    graph: AtenGraph

    def __str__(self) -> str:
        inputs = ", ".join(map(repr, self.graph.inputs))
        lines = [f"  {node!r}  # {node.location.describe()}" for node in self.graph.nodes]
        outputs = ", ".join(map(repr, self.graph.outputs))
        return "\n".join([f"graph({inputs}):", *lines, f"  return ({outputs})"])
