"""Writes made pure: an in-place operator becomes its functional form, and the result is replayed
onto the base and onto every view of it."""

from __future__ import annotations

from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.capture.alias import AliasTracker, links_between, source_tensor
from sardonyx.capture.bind import Parameter, parameters_of
from sardonyx.capture.graph import (
    READS_A_NUMBER,
    Argument,
    AtenGraph,
    Mutation,
    Node,
    SourceLocation,
    SymbolSource,
    Value,
    map_values,
)
from sardonyx.capture.infer import TypeInference
from sardonyx.capture.pure_forms import METADATA_WRITES, WITHOUT_EFFECT, PureForm, pure_form

from sardonyx.errors import CaptureError, UnsupportedOperatorError, format_message

def functionalize(graph: AtenGraph) -> None:
    """Removes every write from the graph; what inputs and buffers hold at the end is noted."""
    if not _writes(graph.nodes):
        graph.nodes = [n for n in graph.nodes if n.op is not READS_A_NUMBER]
        return
    walk = _Walk(graph, TypeInference.for_graph(graph))
    walk.run(graph.nodes)
    graph.nodes = walk.nodes
    graph.outputs = [map_values(o, walk.aliases.current) for o in graph.outputs]
    graph.mutated += walk.mutations()
    for symbol, source in graph.symbols.items():
        if source.value.producer is not None and id(source.value) in walk.replaced:
            graph.symbols[symbol] = SymbolSource(walk.aliases.current(source.value), source.axis)


def functionalize_nodes(
    graph: AtenGraph, nodes: list[Node], outputs: list[Argument], inference: TypeInference
) -> tuple[list[Node], list[Argument]]:
    """The same for a stretch of nodes that writes nothing from outside it."""
    if not _writes(nodes):
        return nodes, outputs
    walk = _Walk(graph, inference)
    walk.run(nodes)
    return walk.nodes, [map_values(o, walk.aliases.current) for o in outputs]


def _writes(nodes: list[Node]) -> bool:
    return any(
        node.op._schema.is_mutable or pure_form_needed(node) for node in nodes
    )


def pure_form_needed(node: Node) -> bool:
    """Whether an operator writes although its schema does not say so."""
    return (
        node.name == "aten::batch_norm"
        and node.arguments["training"]
        and isinstance(node.arguments["running_mean"], Value)
    )


class _Walk:
    def __init__(self, graph: AtenGraph, inference: TypeInference) -> None:
        self.nodes: list[Node] = []
        self.replaced: set[int] = set()
        """Values that no node computes any more: the results of in-place operators."""
        self._graph = graph
        self._inference = inference
        self._location = SourceLocation()
        self._fakes: dict[int, torch.Tensor] = {}
        self._first_write: dict[int, SourceLocation] = {}
        self.aliases = AliasTracker(self._emit)

    def run(self, nodes: list[Node]) -> None:
        for node in nodes:
            self._location = node.location
            try:
                self._node(node)
            except CaptureError as error:
                if "\n" in str(error):
                    raise
                raise CaptureError(
                    format_message(str(error), [("at", node.location.describe())])
                ) from error

    def mutations(self) -> list[Mutation]:
        """Inputs and buffers that were written, in the order of the graph's own lists."""
        roots = {id(b.root): b for b in self.aliases.bases if b.version > 0}
        found = []
        for kind, value in [
            *(("input", v) for v in self._graph.inputs),
            *(("buffer", v) for v in self._graph.parameters.values()),
        ]:
            base = roots.get(id(value))
            if base is not None:
                location = self._first_write.get(id(base), SourceLocation())
                found.append(Mutation(value.name, kind, base.current, location))
        return found

    # -- one node --------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        if node.op is READS_A_NUMBER:
            self._read_number(node)
        elif node.op._schema.name in WITHOUT_EFFECT:
            self._alias_results(node, node.arguments["self"])
        elif node.op._schema.name in METADATA_WRITES:
            self._change_metadata(node)
        elif node.op._schema.is_mutable or pure_form_needed(node):
            self._write(node)
        else:
            self._keep(node)

    def _read_number(self, node: Node) -> None:
        read = node.arguments["self"]
        for symbol, source in self._graph.symbols.items():
            if source.value is read and source.axis is None:
                self._graph.symbols[symbol] = SymbolSource(self.aliases.current(read), None)

    def _keep(self, node: Node) -> None:
        """A pure operator: reads what its arguments hold now; its results may be views."""
        fakes = {name: self._fake_argument(a) for name, a in node.arguments.items()}
        if torch.Tag.dynamic_output_shape in node.op.tags or not _may_alias(node, fakes):
            result: Any = [self._inference.fake_of(o) for o in node.outputs]
            chains: list[Any] = [None] * len(node.outputs)
        else:
            result = _torch_private.run_on_fakes(node.op, fakes, self._inference.mode)
            chains = links_between(
                node.op, node.arguments, fakes, result, self._inference.mode
            )
        source = _source_value(node)
        arguments = {k: map_values(a, self.aliases.current) for k, a in node.arguments.items()}
        self.nodes.append(Node(node.op, arguments, node.outputs, node.location))
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        tensors = [r for r in results if isinstance(r, torch.Tensor)]
        for output, fake, chain in zip(node.outputs, tensors, chains, strict=True):
            self._fakes[id(output)] = fake
            if chain is not None and source is not None:
                self.aliases.add_view(output, source, chain)
            elif chain is None and source is not None and _overlaps(fake, fakes):
                raise CaptureError(f"{node.name} gives a view that cannot be followed")

    def _change_metadata(self, node: Node) -> None:
        """`x.unsqueeze_(0)`: from here on `x` is a view of what it was."""
        target = node.arguments["self"]
        op = METADATA_WRITES[node.op._schema.name](node.op)
        before = Value(f"{target.name}_before", target.type, fake=self._fake(target))
        view = self.aliases.view_of(target)
        self.aliases.views[id(before)] = view
        self._fakes[id(before)] = self._fake(target)
        arguments = {**node.arguments, "self": before}
        (output,) = node.outputs
        self._keep(Node(op, arguments, [output], node.location))
        self.aliases.views[id(target)] = self.aliases.view_of(output)
        self._fakes[id(target)] = self._fakes[id(output)]

    def _write(self, node: Node) -> None:
        form = pure_form(node)
        if form is None:
            raise UnsupportedOperatorError(
                format_message(
                    f"{node.name} writes in place and has no functional form",
                    [("first", node.location.describe()), ("inputs", node.describe_inputs())],
                )
            )
        arguments = {k: map_values(a, self.aliases.current) for k, a in form.arguments.items()}
        made = self._inference.call(self._graph, form.op, (), node.location, arguments)
        self.nodes.append(made)
        self._replace_written(node, form, made.outputs)

    def _replace_written(self, node: Node, form: PureForm, results: list[Value]) -> None:
        """Stores the results where the operator would have written them."""
        for name, position in form.written.items():
            target = node.arguments[name]
            if isinstance(target, Value):
                self._store(target, results[position], resizes=_is_out(node, name))
        for index, output in enumerate(node.outputs):
            name = form.returned.get(index)
            if name is None:
                self.aliases.views[id(output)] = self.aliases.view_of(results[index])
                self._fakes[id(output)] = self._inference.fake_of(results[index])
                self.replaced.add(id(output))
            else:
                self._alias_result(output, node.arguments[name])

    def _store(self, target: Value, content: Value, *, resizes: bool) -> None:
        if resizes and content.shape != self.aliases.current(target).shape:
            # out= of another shape is given the result's shape: new memory.
            self.aliases.views[id(target)] = self.aliases.view_of(content)
            return
        if content.dtype != target.dtype:
            content = self._emit(torch.ops.aten._to_copy.default, content, dtype=target.dtype)
        if content.shape != self.aliases.current(target).shape:
            shape = list(self.aliases.current(target).shape)
            content = self._emit(torch.ops.aten.expand.default, content, shape)
        self.aliases.write(target, content)
        self._first_write.setdefault(id(self.aliases.view_of(target).base), self._location)

    def _alias_results(self, node: Node, target: Argument) -> None:
        for output in node.outputs:
            self._alias_result(output, target)

    def _alias_result(self, output: Value, target: Value) -> None:
        self.aliases.views[id(output)] = self.aliases.view_of(target)
        self._fakes[id(output)] = self._fake(target)
        self.replaced.add(id(output))

    # -- fakes and emitted calls -----------------------------------------------------------------

    def _fake(self, value: Value) -> torch.Tensor:
        if id(value) not in self._fakes:
            self._fakes[id(value)] = self._inference.fake_of(value)
        return self._fakes[id(value)]

    def _fake_argument(self, argument: Argument) -> Any:
        if isinstance(argument, Value):
            return self._fake(argument)
        if isinstance(argument, list):
            return [self._fake_argument(a) for a in argument]
        return self._inference.argument(argument)

    def _emit(self, op: Any, *args: Argument, result_index: int = 0, **kwargs: Argument) -> Value:
        node = self._inference.call(self._graph, op, args, self._location, kwargs)
        self.nodes.append(node)
        return node.outputs[result_index]


def _source_value(node: Node) -> Value | None:
    if "self" in node.arguments:
        value = node.arguments["self"]
        return value if isinstance(value, Value) else None
    return next((a for a in node.arguments.values() if isinstance(a, Value)), None)


def _may_alias(node: Node, fakes: dict[str, Any]) -> bool:
    """Whether a result can share memory with an argument: by its schema, or as a composite."""
    if not isinstance(source_tensor(fakes), torch.Tensor):
        return False
    schema = node.op._schema
    return any(r.alias_info is not None for r in schema.returns) or _torch_private.is_composite(
        node.op
    )


def _overlaps(fake: torch.Tensor, fakes: dict[str, Any]) -> bool:
    return any(
        isinstance(a, torch.Tensor) and _torch_private.shares_memory(fake, a) for a in fakes.values()
    )


def _is_out(node: Node, name: str) -> bool:
    found: list[Parameter] = [p for p in parameters_of(node.op) if p.name == name]
    return found[0].is_out


