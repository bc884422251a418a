"""Functionalization: an in-place operator becomes its functional form, and its result is written
back to the base and seen by every view of it."""

from __future__ import annotations

from dataclasses import replace

import sympy
import torch

from sardonyx.aten.control_flow import all_nodes, map_blocks
from sardonyx.aten.decomposition import expansion
from sardonyx.aten.graph import (
    READS_A_NUMBER,
    SCRIPT,
    Argument,
    AtenGraph,
    Dim,
    Node,
    SourceLocation,
    Value,
    values_in,
)
from sardonyx.aten.schema import METADATA_WRITES, parameters_of
from sardonyx.aten.sequences import SHOWS_ITEMS, TAKES_ITEMS
from sardonyx.aten.type_inference import TypeInference
from sardonyx.errors import CaptureError, UnsupportedOperatorError
from sardonyx.functionalization.alias_analysis import (
    depends_on_layout,
    followed_values,
    is_its_input,
)
from sardonyx.functionalization.conditional_copies import may_be_no_copy
from sardonyx.functionalization.control_flow import ControlFlow
from sardonyx.functionalization.fake_tensors import Origin
from sardonyx.functionalization.functional_graph import FunctionalGraph
from sardonyx.functionalization.functional_variants import (
    RESIZES,
    WITHOUT_EFFECT,
    FunctionalVariant,
    functional_variant,
    has_hidden_writes,
)
from sardonyx.functionalization.views import AS_STRIDED, AliasError


def functionalize(graph: AtenGraph) -> None:
    """Removes every write from the graph; `graph.mutated` says what inputs and buffers hold at the
    end."""
    if not _must_walk(graph.nodes):
        graph.nodes = map_blocks(graph.nodes, _without_markers)
        return
    inference = TypeInference.for_graph(graph)
    target = FunctionalGraph(graph, inference, knows_layouts=graph.captured_by != SCRIPT)
    _Functionalizer(target).run(graph.nodes)
    target.aliases.location = _RESULT
    outputs = list(map(target.current, graph.outputs))
    written = [replace(m, final=target.aliases.current(m.final)) for m in graph.mutated]
    # A buffer that the model assigns holds that at the end, whatever was written before.
    assigned = {mutation.name for mutation in written}
    graph.mutated = [*written, *(m for m in target.mutations() if m.name not in assigned)]
    graph.outputs = outputs
    graph.nodes = target.nodes


_RESULT = SourceLocation(text="what it returns")
"""No node has the line of a return."""


def functionalize_nodes(
    graph: AtenGraph, nodes: list[Node], outputs: list[Argument], inference: TypeInference
) -> tuple[list[Node], list[Argument]]:
    """The same for a list of nodes that write nothing from outside it."""
    if not _must_walk(nodes):
        return nodes, outputs
    target = FunctionalGraph(graph, inference, knows_layouts=True)
    _Functionalizer(target).run(nodes)
    return target.nodes, list(map(target.current, outputs))


def _must_walk(nodes: list[Node]) -> bool:
    """Whether a node writes, or sees the memory of another (`as_strided`)."""
    return any(
        node.op._schema.is_mutable or node.op._schema.name == AS_STRIDED or has_hidden_writes(node)
        for node in all_nodes(nodes)
    )


def _without_markers(nodes: list[Node]) -> list[Node]:
    return [node for node in nodes if node.op is not READS_A_NUMBER]


class _Functionalizer:
    """Walks nodes in order, and adds their functional forms to the graph."""

    def __init__(self, target: FunctionalGraph) -> None:
        self._target = target
        self._graph = target.graph
        self._inference = target.inference
        self._fakes = target.fakes
        self._aliases = target.aliases
        self._control_flow = ControlFlow(target, self.run)
        self._followed: set[Value] | None = set()
        """Values whose memory has to be followed; None for all."""

    def run(self, nodes: list[Node]) -> None:
        outer = self._followed
        followed = followed_values(nodes, self._target.entangled)
        self._followed = None if outer is None or followed is None else outer | followed
        for node in nodes:
            self._aliases.location = node.location
            try:
                self._node(node)
            except AliasError as error:
                raise CaptureError(str(error), [("at", node.location.describe())]) from error

    def _node(self, node: Node) -> None:
        if node.op is READS_A_NUMBER:
            self._target.read_number(node.arguments["self"])
        elif node.blocks:
            self._control_flow.add(node)
        elif node.op._schema.name in WITHOUT_EFFECT:
            self._target.alias_result(node.outputs[0], node.arguments["self"])
        elif node.op._schema.name in METADATA_WRITES:
            self._change_metadata(node)
        elif node.op._schema.is_mutable or has_hidden_writes(node):
            self._write(node)
        elif node.op.namespace == "sardonyx":
            self._keep_own_operator(node)
        else:
            self._keep(node)

    # -- operators without writes ----------------------------------------------------------------

    def _keep_own_operator(self, node: Node) -> None:
        """An operator that PyTorch does not have, so that no fake says what it shares."""
        self._append(node)
        self._fakes.uncertain_layouts.update(node.outputs)
        if node.op in TAKES_ITEMS or node.op in SHOWS_ITEMS:
            self._aliases.hold_items(node.outputs[0], list(node.inputs()))

    def _keep(self, node: Node) -> None:
        """A pure operator: reads what its arguments hold now; its results may be views."""
        origin_of: dict[Value, Origin | None] = {}
        uncertain = self._fakes.uncertain_layouts
        if uncertain and not uncertain.isdisjoint(node.inputs()):
            uncertain.update(node.outputs)
        if is_its_input(node):
            source = next(node.inputs())
            self._fakes.defer(node.outputs, source)
            origin_of[node.outputs[0]] = Origin(source, ())
        elif self._is_followed(node):
            origin_of = self._fakes.run(node)
        else:
            self._fakes.defer(node.outputs, node)
        if node.op._schema.name != AS_STRIDED:
            self._append(node)
        for output, origin in origin_of.items():
            if origin is None:
                self._relate_if_no_copy(node, output)
            elif origin.source not in uncertain:
                self._aliases.add_view(output, origin)
            elif node.op._schema.name == AS_STRIDED:
                raise AliasError(
                    "as_strided() depends on the strides of a tensor, which depend on a branch or a"
                    " loop: clone(memory_format=torch.contiguous_format) it before"
                )
            elif depends_on_layout(node):
                self._aliases.may_share(output, origin.source)
            else:
                self._aliases.add_view(output, origin)

    def _append(self, node: Node) -> None:
        arguments = self._target.current_arguments(node)
        self._target.nodes.append(Node(node.op, arguments, node.outputs, node.location))

    def _relate_if_no_copy(self, node: Node, output: Value) -> None:
        if depends_on_layout(node) and self._graph.captured_by == SCRIPT:
            source = node.arguments["self"]
            inputs = set(self._graph.inputs)
            noted = {s for s, of in self._graph.symbols.items() if of.value in inputs}
            if may_be_no_copy(self._fakes.of(source), noted):
                self._aliases.may_share(output, source)

    def _is_followed(self, node: Node) -> bool:
        if self._followed is None:
            return True
        return any(v in self._followed for v in (*node.inputs(), *node.outputs))

    # -- writes ----------------------------------------------------------------------------------

    def _change_metadata(self, node: Node) -> None:
        """`x.unsqueeze_(0)`: from here on `x` is a view of what it was."""
        target = node.arguments["self"]
        op = METADATA_WRITES[node.op._schema.name](node.op)
        base = self._aliases.base_of(target)
        if base is not None and self._aliases.related.get(base):
            raise CaptureError(
                f"{node.name} changes the shape of a tensor in place, and at run time another"
                " variable may hold that tensor too",
                [
                    ("at", node.location.describe()),
                    ("try", f"{op.__name__.partition('.')[0]}(), which makes a view"),
                ],
            )
        before = Value(f"{target.name}_before", target.type, fake=self._fakes.of(target))
        self._aliases.views[before] = self._aliases.view_of(target)
        (output,) = node.outputs
        self._keep(Node(op, {**node.arguments, "self": before}, [output], node.location))
        self._aliases.views[target] = self._aliases.view_of(output)
        self._fakes.change_metadata(target, self._fakes.of(output))
        self._target.note_write(self._aliases.base_of(before))

    def _write(self, node: Node) -> None:
        form = functional_variant(node)
        if form is None:
            self._write_by_parts(node)
            return
        arguments = {k: self._target.current(a) for k, a in form.arguments.items()}
        made = self._inference.call(self._graph, form.op, (), node.location, arguments)
        self._target.nodes.append(made)
        self._store_results(node, form, made.outputs)

    def _write_by_parts(self, node: Node) -> None:
        """A composite operator, of which some parts write."""
        resizes = node.op._schema.name in RESIZES
        parts = None if resizes else expansion(self._graph, node, self._inference, self._fakes.of)
        if parts is None:
            reason = (
                "changes the memory of a tensor, which the tensors of ONNX do not have"
                if resizes
                else "writes in place and has no functional form"
            )
            raise UnsupportedOperatorError(
                f"{node.name} {reason}",
                [("first", node.location.describe()), ("inputs", node.describe_inputs())],
            )
        nodes, results = parts
        self.run(nodes)
        for output, result in zip(node.outputs, results, strict=True):
            self._target.alias_result(output, result)

    def _store_results(self, node: Node, form: FunctionalVariant, results: list[Value]) -> None:
        """Stores the results where the operator would have written them."""
        out = [p.name for p in parameters_of(node.op) if p.is_out]
        for name, position in form.written.items():
            for index, target in enumerate(values_in(node.arguments[name])):
                self._store(target, results[position + index], resizes=name in out)
        for index, output in enumerate(node.outputs):
            written = form.returned.get(index)
            self._target.alias_result(
                output, results[index] if written is None else node.arguments[written]
            )

    def _store(self, target: Value, content: Value, *, resizes: bool) -> None:
        held = self._aliases.current(target)
        emit = self._target.emit
        if content.dtype != held.dtype:
            content = emit(torch.ops.aten._to_copy.default, content, dtype=held.dtype)
        base = self._aliases.base_of(target)
        self._target.check_writable(base)
        self._target.note_write(base)
        if _same_shape(content.shape, held.shape):
            self._aliases.write(target, content)
        elif resizes:
            self._aliases.replace(target, content)
            self._fakes.resize(target, self._inference.fake_of(content))
        else:
            wide = emit(torch.ops.aten.expand.default, content, list(held.shape))
            self._aliases.write(target, wide)


def _same_shape(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> bool:
    return len(left) == len(right) and all(
        a == b or sympy.expand(a - b) == 0 for a, b in zip(left, right, strict=True)
    )
