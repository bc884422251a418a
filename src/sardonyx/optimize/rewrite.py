"""How a pass walks the model, takes a node out and keeps the names of the graph's outputs."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import ClassVar

import onnx_ir as ir

from sardonyx.lower.onnx_types.subgraphs import graphs_of, subgraphs_of, with_bodies


def remove_node(node: ir.Node) -> None:
    """Take an unused node out of its graph, with the uses its bodies make of outer values."""
    graph = node.graph
    assert graph is not None
    for body in subgraphs_of(node):
        release_inputs(body)
    graph.remove(node, safe=True)


def release_inputs(nodes: Iterable[ir.Node]) -> None:
    """Let nodes that are taken out, and those in their bodies, read nothing."""
    for node in with_bodies(nodes):
        for index in range(len(node.inputs)):
            node.replace_input_with(index, None)


def can_take_the_place_of(new: ir.Value, output: ir.Value) -> bool:
    """Whether `new` may be listed as a graph output where `output` was.

    Inputs, initializers and values of an outer graph may not, nor may one value be two outputs.
    """
    return (
        new.producer() is not None
        and new.graph is output.graph
        and not (new.is_graph_output() or new.is_graph_input() or new.is_initializer())
    )


def replace_value(old: ir.Value, new: ir.Value) -> None:
    """Use `new` wherever `old` was used; a graph output keeps its name, type and declared shape."""
    if new.shape is None:
        new.shape = old.shape
    if new.type is None:
        new.type = old.type
    if old.is_graph_output():
        _replace_graph_output(old, new)
    old.replace_all_uses_with(new)


def _replace_graph_output(old: ir.Value, new: ir.Value) -> None:
    graph, producer = old.graph, old.producer()
    assert graph is not None and producer is not None
    substitute = new
    if not can_take_the_place_of(new, old):
        identity = ir.node("Identity", [new], metadata_props=dict(producer.metadata_props))
        substitute = identity.outputs[0]
        substitute.name = old.name
        graph.insert_after(producer, identity)
    substitute.name = old.name
    substitute.type = new.type if old.type is None else old.type
    substitute.shape = new.shape if old.shape is None else old.shape
    for index, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[index] = substitute


def bypass(node: ir.Node, replacement: ir.Value) -> bool:
    """Remove a node whose first output always equals `replacement`.

    An Identity that only names a graph output has nothing to give and stays (False).
    """
    output = node.outputs[0]
    if (
        node.op_type == "Identity"
        and output.is_graph_output()
        and not output.uses()
        and not can_take_the_place_of(replacement, output)
    ):
        return False
    replace_value(output, replacement)
    remove_node(node)
    return True


def replace_with_constant(node: ir.Node, tensor: ir.TensorProtocol) -> ir.Value:
    """Let a Constant give what a one-output node computes.

    A Constant and not an initializer: function bodies hold none.
    """
    old = node.outputs[0]
    new = insert_constant(tensor, old.name, before=node)
    replace_value(old, new)
    remove_node(node)
    return new


def insert_constant(tensor: ir.TensorProtocol, name: str | None, *, before: ir.Node) -> ir.Value:
    """A new Constant with the provenance of the node it is placed before."""
    assert before.graph is not None
    constant = ir.Node(
        "",
        "Constant",
        [],
        [ir.AttrTensor("value", tensor)],
        metadata_props=dict(before.metadata_props),
    )
    output = constant.outputs[0]
    output.name = name
    output.type = ir.TensorType(tensor.dtype)
    output.shape = ir.Shape(tensor.shape.numpy())
    before.graph.insert_before(before, constant)
    return output


class NodePass(ir.passes.InPlacePass):
    """A pass that looks at one node of the ONNX domain at a time, everywhere in the model."""

    op_types: ClassVar[frozenset[str]]

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        return RewriteNodes([self]).call(model)

    @abc.abstractmethod
    def rewrite(self, node: ir.Node, source: ir.Value) -> bool:
        """Rewrite the node, which reads `source` first, if it can be; whether it was."""


class RewriteNodes(ir.passes.InPlacePass):
    """Several node passes in one walk; a node that one of them changed is left for the next."""

    def __init__(self, passes: Sequence[NodePass]) -> None:
        super().__init__()
        self._by_op_type: dict[str, list[NodePass]] = {}
        for each in passes:
            for op_type in each.op_types:
                self._by_op_type.setdefault(op_type, []).append(each)

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        modified = False
        for graph in graphs_of(model):
            for node in graph:
                passes = self._by_op_type.get(node.op_type, ())
                source = node.inputs[0] if passes and node.inputs else None
                if source is not None and node.domain == "":
                    modified |= any(each.rewrite(node, source) for each in passes)
        return ir.passes.PassResult(model, modified=modified)
