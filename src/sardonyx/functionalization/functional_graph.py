"""The graph without writes, while it is being built."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import sympy

from sardonyx.aten.graph import (
    Argument,
    AtenGraph,
    Mutation,
    Node,
    SourceLocation,
    SymbolSource,
    Value,
    map_values,
)
from sardonyx.aten.storage import holds_memory
from sardonyx.aten.type_inference import TypeInference
from sardonyx.functionalization.alias_tracking import AliasTracker, Base
from sardonyx.functionalization.fake_tensors import FakeTensors
from sardonyx.functionalization.views import AliasError


class FunctionalGraph:
    """The nodes so far, and what every value of the graph with writes holds after them."""

    def __init__(self, graph: AtenGraph, inference: TypeInference, knows_layouts: bool) -> None:
        self.graph = graph
        self.inference = inference
        self.nodes: list[Node] = []
        """Of the block that is being built."""
        self.fakes = FakeTensors(inference, knows_layouts)
        self.entangled = _overlapping(graph.parameters.values())
        self.aliases = AliasTracker(self.emit, self.fakes.of, self.fakes.of_memory)
        self._symbols: dict[Value, list[sympy.Symbol]] = {}
        for symbol, source in graph.symbols.items():
            self._symbols.setdefault(source.value, []).append(symbol)
        self._first_write: dict[Value, SourceLocation] = {}
        """By the root of what is written."""
        self._numbers = count(1)

    # -- values ----------------------------------------------------------------------------------

    def current(self, argument: Argument) -> Argument:
        """The argument with what its values hold now."""
        return map_values(argument, self.aliases.current)

    def current_arguments(self, node: Node) -> dict[str, Argument]:
        return {name: self.current(a) for name, a in node.arguments.items()}

    def alias_result(self, output: Value, target: Value) -> None:
        """`output`, which no node computes any more, is `target` as it is now."""
        self.aliases.views[output] = self.aliases.view_of(target)
        self.fakes.defer([output], target)
        if target in self.fakes.uncertain_layouts:
            self.fakes.uncertain_layouts.add(output)
        for symbol in self._symbols.get(output, ()):
            axis = self.graph.symbols[symbol].axis
            self.graph.symbols[symbol] = SymbolSource(self.aliases.current(target), axis)

    def read_number(self, value: Value) -> None:
        """A number was read from a tensor: later writes to the tensor do not change it."""
        for symbol in self._symbols.get(value, ()):
            if self.graph.symbols[symbol].axis is None:
                self.graph.symbols[symbol] = SymbolSource(self.aliases.current(value), None)

    # -- nodes -----------------------------------------------------------------------------------

    def emit(self, op: Any, *args: Argument, result_index: int = 0, **kwargs: Argument) -> Value:
        node = self.inference.call(self.graph, op, args, self.aliases.location, kwargs)
        self.nodes.append(node)
        return node.outputs[result_index]

    def new_contents(self, written: Iterable[Base]) -> list[Value]:
        """A new value for each, for what the memory holds inside or after a block."""
        return [
            Value(f"{base.root.name}_written_{next(self._numbers)}", base.current.type)
            for base in written
        ]

    # -- writes ----------------------------------------------------------------------------------

    def check_writable(self, base: Base) -> None:
        if base.root in self.entangled:
            raise AliasError(
                f"{base.root.name} is written, and parts of its memory belong to other"
                " parameters or buffers as well: make one of them the whole, or copy"
            )

    def note_write(self, base: Base) -> None:
        self._first_write.setdefault(base.root, self.aliases.location)

    def mutations(self) -> list[Mutation]:
        """Inputs and buffers that were written or reshaped in place, in the graph's own order."""
        found = []
        for kind, value in [
            *(("input", v) for v in self.graph.inputs),
            *(("buffer", v) for v in self.graph.parameters.values()),
        ]:
            view = self.aliases.views.get(value)
            if kind == "input" and view is not None and view.base.uncertain_since is not None:
                continue
            final = self.aliases.current(value)
            if final is not value:
                root = self.aliases.base_of(value).root
                location = self._first_write.get(root, SourceLocation())
                found.append(Mutation(value.name, kind, final, location))
        return found


def _overlapping(values: Iterable[Value]) -> set[Value]:
    """Those that share memory with each other, without being the same tensor."""
    placed = []
    for value in values:
        tensor = value.constant
        if tensor is not None and tensor.numel() and holds_memory(tensor):
            axes = zip(tensor.shape, tensor.stride(), strict=True)
            end = tensor.data_ptr() + tensor.itemsize * (1 + sum((d - 1) * s for d, s in axes))
            placed.append((tensor.data_ptr(), end, value))
    placed.sort(key=lambda place: place[:2])
    found: set[Value] = set()
    group: list[Value] = []
    reached = 0
    for start, end, value in placed:
        if start >= reached:
            group = []
        group.append(value)
        if len(group) > 1:
            found.update(group[-2:])
        reached = max(reached, end)
    return found
