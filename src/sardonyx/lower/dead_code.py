"""Drops nodes nothing reads. After functionalization no node has another effect."""

from __future__ import annotations

import sympy

from sardonyx.aten.graph import Argument, AtenGraph, Block, Node, Value


def remove_unused(graph: AtenGraph) -> None:
    live = _Live(graph)
    for mutation in graph.mutated:
        live.mark(mutation.final)
    live.keep_read(graph)


class _Live:
    def __init__(self, graph: AtenGraph) -> None:
        self._symbols = graph.symbols
        self._values: set[int] = set()

    def mark(self, argument: Argument) -> None:
        if isinstance(argument, Value):
            self._values.add(id(argument))
        elif isinstance(argument, list):
            for item in argument:
                self.mark(item)
        elif isinstance(argument, sympy.Basic):
            for symbol in argument.free_symbols:
                source = self._symbols.get(symbol)
                if source is not None:
                    self._values.add(id(source.value))

    def keep_read(self, block: Block) -> None:
        self.mark(block.outputs)
        kept: list[Node] = []
        for node in reversed(block.nodes):
            if any(id(o) in self._values for o in node.outputs):
                kept.append(node)
                self._mark_read(node)
        block.nodes = kept[::-1]

    def _mark_read(self, node: Node) -> None:
        for inner in node.blocks:
            self.keep_read(inner)
        for argument in node.arguments.values():
            self.mark(argument)
        for value in (*node.outputs, *(v for inner in node.blocks for v in inner.inputs)):
            for size in value.shape:
                # A symbol may be read off a value that computes nothing else.
                if isinstance(size, sympy.Basic):
                    self.mark(size)
