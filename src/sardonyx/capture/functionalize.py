"""Writes made pure: an in-place operator becomes its functional form, and the result is replayed
onto the base and onto every view of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.capture.alias import AS_STRIDED, AliasTracker, Origin, View, origins, strided_inside
from sardonyx.capture.alias_classes import followed_values, is_its_input, may_alias
from sardonyx.capture.bind import parameters_of
from sardonyx.capture.control_flow import all_nodes, map_blocks
from sardonyx.capture.expansion import expansion
from sardonyx.capture.graph import (
    READS_A_NUMBER,
    Argument,
    AtenGraph,
    Block,
    Dim,
    Mutation,
    Node,
    SourceLocation,
    SymbolSource,
    Value,
    map_values,
    values_in,
)
from sardonyx.capture.infer import TypeInference
from sardonyx.capture.pure_forms import (
    METADATA_WRITES,
    RESIZES,
    WITHOUT_EFFECT,
    PureForm,
    pure_form,
    writes_in_secret,
)
from sardonyx.capture.shape_rules import SHAPE_RULES
from sardonyx.capture.storage import holds_memory
from sardonyx.capture.views import Strided
from sardonyx.errors import CaptureError, UnsupportedOperatorError, format_message


def functionalize(graph: AtenGraph) -> None:
    """Removes every write from the graph; what inputs and buffers hold at the end is noted."""
    if not _must_walk(graph.nodes):
        graph.nodes = map_blocks(graph.nodes, _without_markers)
        return
    knows_layouts = graph.captured_by == "torch.export"
    walk = _Walk(graph, TypeInference.for_graph(graph), knows_layouts)
    walk.run(graph.nodes)
    graph.outputs = [map_values(o, walk.aliases.current) for o in graph.outputs]
    written = [replace(m, final=walk.aliases.current(m.final)) for m in graph.mutated]
    graph.mutated = [*written, *walk.mutations()]
    graph.nodes = walk.nodes


def functionalize_nodes(
    graph: AtenGraph, nodes: list[Node], outputs: list[Argument], inference: TypeInference
) -> tuple[list[Node], list[Argument]]:
    """The same for a stretch of nodes that writes nothing from outside it."""
    if not _must_walk(nodes):
        return nodes, outputs
    walk = _Walk(graph, inference, knows_layouts=True)
    walk.run(nodes)
    outputs = [map_values(o, walk.aliases.current) for o in outputs]
    return walk.nodes, outputs


def _must_walk(nodes: list[Node]) -> bool:
    """Whether a node writes, or sees the memory of another (`as_strided`)."""
    return any(
        node.op._schema.is_mutable or node.op._schema.name == AS_STRIDED or writes_in_secret(node)
        for node in all_nodes(nodes)
    )


def _without_markers(nodes: list[Node]) -> list[Node]:
    return [node for node in nodes if node.op is not READS_A_NUMBER]


class _Walk:
    def __init__(self, graph: AtenGraph, inference: TypeInference, knows_layouts: bool) -> None:
        self.nodes: list[Node] = []
        self._graph = graph
        self._inference = inference
        self._knows_layouts = knows_layouts
        """Whether the fakes of the graph lie in memory as the tensors of the model do."""
        self._location = SourceLocation()
        self._fakes: dict[Value, torch.Tensor] = {}
        self._memory: dict[Value, torch.Tensor] = {}
        """The fakes of values whose shape was changed in place, as they were at first."""
        self._pending: dict[Value, Node | Value] = {}
        """Values whose fake nobody asked for yet: what gives it, or has the same."""
        self._first_write: dict[Value, SourceLocation] = {}
        """By the root of what is written."""
        self._symbols: dict[Value, list[sympy.Symbol]] = {}
        for symbol, source in graph.symbols.items():
            self._symbols.setdefault(source.value, []).append(symbol)
        shared, self._entangled = _overlapping_parameters(list(graph.parameters.values()))
        self.aliases = AliasTracker(self._emit, self._fake, self._memory_of, shared)
        self._followed: set[Value] | None = set()

    def run(self, nodes: list[Node]) -> None:
        outer = self._followed
        shared = [*self.aliases.shared, *(whole for whole, _ in self.aliases.shared.values())]
        followed = followed_values(nodes, [*shared, *self._entangled])
        self._followed = None if outer is None or followed is None else outer | followed
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
        """Inputs and buffers that were written or reshaped in place, in the graph's own order."""
        found = []
        for kind, value in [
            *(("input", v) for v in self._graph.inputs),
            *(("buffer", v) for v in self._graph.parameters.values()),
        ]:
            final = self.aliases.current(value)
            if final is not value:
                root = self.aliases.view_of(value).base.root
                location = self._first_write.get(root, SourceLocation())
                found.append(Mutation(value.name, kind, final, location))
        return found

    # -- one node --------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        if node.op is READS_A_NUMBER:
            self._read_number(node)
        elif node.blocks:
            self._control(node)
        elif node.op._schema.name in WITHOUT_EFFECT:
            self._alias_results(node, node.arguments["self"])
        elif node.op._schema.name in METADATA_WRITES:
            self._change_metadata(node)
        elif node.op._schema.is_mutable or writes_in_secret(node):
            self._write(node)
        else:
            self._keep(node)

    def _read_number(self, node: Node) -> None:
        read = node.arguments["self"]
        for symbol in self._symbols.get(read, ()):
            if self._graph.symbols[symbol].axis is None:
                self._graph.symbols[symbol] = SymbolSource(self.aliases.current(read), None)

    def _control(self, node: Node) -> None:
        """A branch or a loop: its blocks read what the values around them hold now."""
        arguments = {k: map_values(a, self.aliases.current) for k, a in node.arguments.items()}
        blocks = [self._block(block) for block in node.blocks]
        self.nodes.append(Node(node.op, arguments, node.outputs, node.location, blocks=blocks))

    def _block(self, block: Block) -> Block:
        outer, self.nodes = self.nodes, []
        state = self.aliases.state()
        self.run(block.nodes)
        outputs = [map_values(o, self.aliases.current) for o in block.outputs]
        made = {*block.inputs, *(o for n in all_nodes(self.nodes) for o in n.outputs)}
        written = [root for root in self.aliases.restore(state) if root not in made]
        if written:
            raise CaptureError(
                f"{written[0].name} is written inside a branch or a loop: return it from there"
            )
        inner, self.nodes = self.nodes, outer
        return Block(block.inputs, inner, outputs)

    def _keep(self, node: Node) -> None:
        """A pure operator: reads what its arguments hold now; its results may be views."""
        origin_of: dict[Value, Origin | None] = {}
        if is_its_input(node):
            source = next(node.inputs())
            (output,) = node.outputs
            self._pending[output], origin_of[output] = source, Origin(source, ())
        elif self._is_followed(node):
            origin_of = self._run_on_fakes(node)
        else:
            self._pending |= dict.fromkeys(node.outputs, node)
        if node.op._schema.name != AS_STRIDED:
            arguments = {k: map_values(a, self.aliases.current) for k, a in node.arguments.items()}
            self.nodes.append(Node(node.op, arguments, node.outputs, node.location))
        for output, origin in origin_of.items():
            if origin is not None:
                self.aliases.add_view(output, origin)

    def _is_followed(self, node: Node) -> bool:
        if self._followed is None:
            return True
        return any(v in self._followed for v in (*node.inputs(), *node.outputs))

    def _run_on_fakes(self, node: Node) -> dict[Value, Origin | None]:
        """Makes the fakes of the results, and says what each is a view of."""
        found: list[Origin | None] = [None] * len(node.outputs)
        if torch.Tag.dynamic_output_shape in node.op.tags or (
            self._knows_layouts and not may_alias(node)
        ):
            tensors = [self._inference.fake_of(o) for o in node.outputs]
        else:
            # How a result lies in memory decides what is a view of it and what a copy.
            fakes = {name: self._fake_argument(a) for name, a in node.arguments.items()}
            rule = SHAPE_RULES.get(node.op)
            result = _torch_private.run_on_fakes(node.op, fakes, self._inference.mode, rule)
            results = list(result) if isinstance(result, (list, tuple)) else [result]
            tensors = [r for r in results if isinstance(r, torch.Tensor)]
            found = list(origins(node.op, node.arguments, fakes, result, self._inference.mode))
        self._fakes |= dict(zip(node.outputs, tensors, strict=True))
        return dict(zip(node.outputs, found, strict=True))

    def _change_metadata(self, node: Node) -> None:
        """`x.unsqueeze_(0)`: from here on `x` is a view of what it was."""
        target = node.arguments["self"]
        op = METADATA_WRITES[node.op._schema.name](node.op)
        before = Value(f"{target.name}_before", target.type, fake=self._fake(target))
        of = self.aliases.view_of(target)
        self.aliases.views[before] = of
        (output,) = node.outputs
        self._keep(Node(op, {**node.arguments, "self": before}, [output], node.location))
        self.aliases.views[target] = self.aliases.view_of(output)
        self._memory.setdefault(target, self._fake(target))
        self._fakes[target] = self._fake(output)
        self._first_write.setdefault(of.base.root, self._location)

    def _write(self, node: Node) -> None:
        form = pure_form(node)
        if form is None:
            self._write_by_parts(node)
            return
        arguments = {k: map_values(a, self.aliases.current) for k, a in form.arguments.items()}
        made = self._inference.call(self._graph, form.op, (), node.location, arguments)
        self.nodes.append(made)
        self._replace_written(node, form, made.outputs)

    def _write_by_parts(self, node: Node) -> None:
        """An operator made of others, of which some write."""
        resizes = node.op._schema.name in RESIZES
        parts = None if resizes else expansion(self._graph, node, self._inference, self._fake)
        if parts is None:
            reason = (
                "changes the memory of a tensor, which the tensors of ONNX do not have"
                if resizes
                else "writes in place and has no functional form"
            )
            raise UnsupportedOperatorError(
                format_message(
                    f"{node.name} {reason}",
                    [("first", node.location.describe()), ("inputs", node.describe_inputs())],
                )
            )
        nodes, results = parts
        self.run(nodes)
        for output, result in zip(node.outputs, results, strict=True):
            self._alias_result(output, result)

    def _replace_written(self, node: Node, form: PureForm, results: list[Value]) -> None:
        """Stores the results where the operator would have written them."""
        for name, position in form.written.items():
            for index, target in enumerate(values_in(node.arguments[name])):
                self._store(target, results[position + index], resizes=_is_out(node, name))
        for index, output in enumerate(node.outputs):
            written = form.returned.get(index)
            self._alias_result(
                output, results[index] if written is None else node.arguments[written]
            )

    def _store(self, target: Value, content: Value, *, resizes: bool) -> None:
        held = self.aliases.current(target)
        if content.dtype != held.dtype:
            content = self._emit(torch.ops.aten._to_copy.default, content, dtype=held.dtype)
        view = self.aliases.view_of(target)
        self._check_writable(view)
        self._first_write.setdefault(view.base.root, self._location)
        if _same_shape(content.shape, held.shape):
            self.aliases.write(target, content)
        elif resizes:
            self.aliases.replace(target, content)
            self._fakes[target] = self._inference.fake_of(content)
        else:
            wide = self._emit(torch.ops.aten.expand.default, content, list(held.shape))
            self.aliases.write(target, wide)

    def _check_writable(self, view: View) -> None:
        if view.base.root in self._entangled:
            raise CaptureError(
                f"{view.base.root.name} is written, and parts of its memory belong to other"
                " parameters or buffers as well: make one of them the whole, or copy"
            )

    def _alias_results(self, node: Node, target: Argument) -> None:
        for output in node.outputs:
            self._alias_result(output, target)

    def _alias_result(self, output: Value, target: Value) -> None:
        """`output`, which no node computes any more, is `target` as it is now."""
        self.aliases.views[output] = self.aliases.view_of(target)
        self._pending[output] = target
        for symbol in self._symbols.get(output, ()):
            axis = self._graph.symbols[symbol].axis
            self._graph.symbols[symbol] = SymbolSource(self.aliases.current(target), axis)

    # -- fakes and emitted calls -----------------------------------------------------------------

    def _fake(self, value: Value) -> torch.Tensor:
        wanted = [value]
        while wanted:
            last = wanted[-1]
            pending = None if last in self._fakes else self._pending.get(last)
            reads = [pending] if isinstance(pending, Value) else pending.inputs() if pending else ()
            missing = [v for v in reads if v not in self._fakes]
            wanted += missing
            if missing:
                continue
            if isinstance(pending, Value):
                self._fakes[last] = self._fakes[pending]
            elif pending is not None:
                self._run_on_fakes(pending)
            elif last not in self._fakes:
                self._fakes[last] = self._inference.fake_of(last)
            wanted.pop()
        return self._fakes[value]

    def _memory_of(self, root: Value) -> torch.Tensor:
        return self._memory[root] if root in self._memory else self._fake(root)

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


def _same_shape(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> bool:
    return len(left) == len(right) and all(
        a == b or sympy.expand(a - b) == 0 for a, b in zip(left, right, strict=True)
    )


def _overlapping_parameters(
    values: list[Value],
) -> tuple[dict[Value, tuple[Value, Strided]], set[Value]]:
    """Parameters that lie inside another one, and those that overlap in any other way."""
    by_storage: dict[int, list[tuple[Value, torch.Tensor]]] = {}
    for value in values:
        tensor = value.constant
        if tensor is not None and tensor.numel() and holds_memory(tensor):
            key = tensor.untyped_storage().data_ptr()
            by_storage.setdefault(key, []).append((value, tensor))
    inside: dict[Value, tuple[Value, Strided]] = {}
    entangled: set[Value] = set()
    for group in by_storage.values():
        if len(group) == 1:
            continue
        whole, memory = max(group, key=lambda item: item[1].numel())
        first, end = _extent(memory)
        for value, tensor in group:
            if value is whole:
                continue
            start, stop = _extent(tensor)
            link = strided_inside(memory, tuple(tensor.shape), tensor.stride(), start - first)
            if link is None or start < first or stop > end or tensor.dtype != memory.dtype:
                entangled |= {value, whole}
            else:
                inside[value] = (whole, link)
    return inside, entangled


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    first = int(tensor.storage_offset())
    last = sum((d - 1) * s for d, s in zip(tensor.shape, tensor.stride(), strict=True))
    return first, first + last + 1


def _is_out(node: Node, name: str) -> bool:
    return next(p.is_out for p in parameters_of(node.op) if p.name == name)
