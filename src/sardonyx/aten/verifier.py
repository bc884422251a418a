"""What every capture guarantees the lowering, checked once per export.

Of the graph, and of every block inside it:

- No node writes: its schema has no written argument, and no marker of a capture is left.
- Arguments are bound: each node has all arguments of its schema, by name and in its order.
- Values are computed before they are read, each by one node. A block reads what is known around it.
- Values are typed: each has a dtype and a rank, and every symbol in its sizes has a source. A
  constant has the type of its tensor. No node reads a tensor of unknown rank.
- Blocks fit their node: a branch has two, without inputs, which return what the node does; a loop
  has one, whose inputs are the iteration number and what is carried, and which returns whether to
  continue, what is carried on and what is stacked.
- Nodes have a source location, where the capture knows one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sympy
import torch

from sardonyx.aten.control_flow import BRANCH, LOOP
from sardonyx.aten.graph import (
    READS_A_NUMBER,
    Argument,
    AtenGraph,
    Block,
    Node,
    SourceLocation,
    UnrankedType,
    Value,
    values_in,
)
from sardonyx.aten.schema import parameters_of
from sardonyx.errors import InternalError


def verify(graph: AtenGraph) -> None:
    """Raises InternalError for a graph that breaks one of the guarantees."""
    verifier = _Verifier(graph)
    verifier.block(graph, set(), graph.parameters.values())


class _Verifier:
    def __init__(self, graph: AtenGraph) -> None:
        self._graph = graph
        self._defined: set[Value] = set()
        """All values, those in blocks that are done, too."""
        self._sourced: set[sympy.Basic] = set()
        """Sizes whose symbols are known to have sources."""

    def block(self, block: Block, outer: set[Value], others: Iterable[Value] = ()) -> None:
        known = set(outer)
        for value in (*block.inputs, *others):
            self._define(value, known, "an input")
        for node in block.nodes:
            self._node(node, known)
        results = [(value, "an output") for value in values_in(block.outputs)]
        if block is self._graph:
            results += [(m.final, f"the final content of {m.name}") for m in self._graph.mutated]
        for value, what in results:
            if value not in known:
                self._check_constant(value, what)

    def _node(self, node: Node, known: set[Value]) -> None:
        parameters = parameters_of(node.op)
        if node.op is READS_A_NUMBER or any(p.is_written for p in parameters):
            raise InternalError(f"{node.name} writes its arguments after functionalization")
        if [p.name for p in parameters] != list(node.arguments):
            raise InternalError(f"{node.name} has arguments {list(node.arguments)}")
        if not isinstance(node.location, SourceLocation):
            raise InternalError(f"{node.name} has no source location")
        for value in node.inputs():
            if value not in known:
                self._check_constant(value, f"an input of {node.name}")
            if isinstance(value.type, UnrankedType):
                raise InternalError(f"{node.name} reads {value}, whose rank is not known")
        _check_blocks(node)
        for inner in node.blocks:
            self.block(inner, known)
        for output in node.outputs:
            self._define(output, known, f"an output of {node.name}")

    def _define(self, value: Value, known: set[Value], what: str) -> None:
        if value in self._defined:
            raise InternalError(f"{value} is {what}, and is computed twice")
        self._check_type(value, what)
        self._defined.add(value)
        known.add(value)

    def _check_constant(self, value: Value, what: str) -> None:
        if value.constant is None:
            raise InternalError(f"{value} is {what}, and is not computed before")
        if value not in self._defined:
            self._defined.add(value)
            self._check_type(value, what)

    def _check_type(self, value: Value, what: str) -> None:
        if not isinstance(value.dtype, torch.dtype) or not isinstance(value.shape, tuple):
            raise InternalError(f"%{value.name} is {what}, and has no dtype or no rank")
        constant = value.constant
        if constant is not None and (constant.dtype, constant.dim()) != (
            value.dtype,
            value.type.rank,
        ):
            raise InternalError(f"{value} is {what}, and is a constant of another type")
        for size in value.shape:
            if isinstance(size, int) or size in self._sourced:
                continue
            if size is None and value.is_sequence:
                continue
            if not isinstance(size, sympy.Expr) or size.free_symbols - self._graph.symbols.keys():
                raise InternalError(f"{value} is {what}, and no source gives the size {size}")
            self._sourced.add(size)


def _check_blocks(node: Node) -> None:
    if node.op is BRANCH:
        fits = len(node.blocks) == 2 and all(
            not block.inputs and _same_types(block.outputs, node.outputs) for block in node.blocks
        )
    elif node.op is LOOP:
        fits = len(node.blocks) == 1 and _is_loop_body(node, node.blocks[0])
    else:
        fits = not node.blocks
    if not fits:
        raise InternalError(f"{node.name} has blocks that do not fit its arguments and outputs")


def _is_loop_body(node: Node, body: Block) -> bool:
    carried: list[Value] = node.arguments["carried"]
    count = len(carried)
    return (
        len(body.inputs) == 1 + count
        and len(body.outputs) == 1 + len(node.outputs)
        and len(node.outputs) >= count
        and _same_types(carried, body.inputs[1:])
        and _same_types(body.outputs[1 : 1 + count], body.inputs[1:])
        and _same_types(body.inputs[1:], node.outputs[:count])
    )


def _same_types(left: Sequence[Argument], right: Sequence[Value]) -> bool:
    """Whether there are as many, of the same dtypes and ranks."""
    return len(left) == len(right) and all(map(_same_type, left, right))


def _same_type(left: Argument, right: Value) -> bool:
    if not isinstance(left, Value):  # a number
        return right.type.rank == 0
    if left.dtype != right.dtype:
        return False
    return isinstance(right.type, UnrankedType) or left.type.rank == right.type.rank
