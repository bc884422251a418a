"""Consecutive nodes of a recorded graph, as a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import sympy

from sardonyx.aten.control_flow import all_nodes
from sardonyx.aten.graph import (
    Argument,
    AtenGraph,
    Block,
    Node,
    SymbolSource,
    Value,
    map_values,
    values_in,
)
from sardonyx.lower.values import TORCH_TO_ONNX


@dataclass(frozen=True)
class Subgraph:
    """The nodes from `start` up to `end`. It takes what they read from outside, and gives what is
    read after them, or returned."""

    graph: AtenGraph
    start: int
    end: int

    @property
    def nodes(self) -> Sequence[Node]:
        return self.graph.nodes[self.start : self.end]

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.end == len(self.graph.nodes)

    def inputs(self) -> list[Value]:
        if self.is_whole:
            return list(self.graph.inputs)
        made = self._made()
        return [value for value in self._read() if value not in made and value.constant is None]

    def outputs(self) -> list[Value]:
        graph = self.graph
        sources = _sources(_symbols_in(graph.outputs), graph)
        after = {*values_in(graph.outputs), *_read(graph.nodes[self.end :], graph), *sources}
        return [value for value in self._made() if value in after]

    def halves(self) -> Iterator[tuple[Subgraph, Subgraph]]:
        """Both parts for every place to divide it, those in the middle first. What one passes to
        the other is tensors that a file can have as inputs."""
        middle = (self.start + self.end) / 2
        for cut in sorted(range(self.start + 1, self.end), key=lambda cut: abs(cut - middle)):
            upper = Subgraph(self.graph, self.start, cut)
            lower = Subgraph(self.graph, cut, self.end)
            if all(map(_can_be_input, lower.inputs())):
                yield upper, lower

    def as_graph(self) -> AtenGraph:
        """Copies of everything: a graph is changed where it is lowered."""
        copies: dict[Value, Value] = {}

        def copy(value: Value) -> Value:
            if value not in copies:
                copies[value] = Value(
                    value.name, value.type, fake=value.fake, constant=value.constant
                )
            return copies[value]

        def copied(node: Node) -> Node:
            return Node(
                node.op,
                {name: map_values(a, copy) for name, a in node.arguments.items()},
                [copy(value) for value in node.outputs],
                node.location,
                [
                    Block(
                        [copy(value) for value in block.inputs],
                        [copied(inner) for inner in block.nodes],
                        map_values(block.outputs, copy),
                    )
                    for block in node.blocks
                ],
            )

        read, symbols = self._read(), _symbols_of(self.nodes)
        return AtenGraph(
            inputs=[copy(value) for value in self.inputs()],
            nodes=[copied(node) for node in self.nodes],
            outputs=[copy(value) for value in self.outputs()],
            parameters={n: copy(v) for n, v in self.graph.parameters.items() if v in read},
            symbols={
                symbol: SymbolSource(copy(source.value), source.axis)
                for symbol, source in self.graph.symbols.items()
                if symbol in symbols
            },
            symbol_names=self.graph.symbol_names,
            captured_by=self.graph.captured_by,
        )

    def _made(self) -> dict[Value, None]:
        return dict.fromkeys(value for node in self.nodes for value in node.outputs)

    def _read(self) -> dict[Value, None]:
        return _read(self.nodes, self.graph)


def _can_be_input(value: Value) -> bool:
    kind = TORCH_TO_ONNX.get(value.dtype)
    return value.has_shape and kind is not None and kind.bitwidth >= 8


def _read(nodes: Sequence[Node], graph: AtenGraph) -> dict[Value, None]:
    """What nodes and their blocks read, and what they read sizes off; in order, without what only
    their blocks know."""
    within: set[Value] = set()
    found: dict[Value, None] = {}
    for node in all_nodes(list(nodes)):
        found.update(dict.fromkeys(node.inputs()))
        for block in node.blocks:
            found.update(dict.fromkeys(values_in(block.outputs)))
            within.update(block.inputs, *(inner.outputs for inner in block.nodes))
    found.update(dict.fromkeys(_sources(_symbols_of(nodes), graph)))
    return {value: None for value in found if value not in within}


def _sources(symbols: Iterable[sympy.Symbol], graph: AtenGraph) -> list[Value]:
    return [graph.symbols[symbol].value for symbol in symbols if symbol in graph.symbols]


def _symbols_of(nodes: Sequence[Node]) -> dict[sympy.Symbol, None]:
    """The size symbols that nodes compute with, or that are sizes of what they have to do with."""
    found: dict[sympy.Symbol, None] = {}
    for node in all_nodes(list(nodes)):
        blocks = [part for b in node.blocks for part in (*b.inputs, *b.outputs)]
        found.update(_symbols_in([*node.arguments.values(), *node.outputs, *blocks]))
    return found


def _symbols_in(argument: Argument) -> dict[sympy.Symbol, None]:
    if isinstance(argument, Value):
        return _symbols_in(list(argument.shape))
    if isinstance(argument, (list, tuple)):
        return {symbol: None for item in argument for symbol in _symbols_in(item)}
    if isinstance(argument, sympy.Basic):
        return dict.fromkeys(sorted(argument.free_symbols, key=str))
    return {}
