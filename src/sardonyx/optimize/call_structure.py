"""What makes two calls of a module the same computation on other values."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from sardonyx.lower.onnx_types.subgraphs import subgraphs_of
from sardonyx.optimize.common_subexpressions import attribute_key

_ATTRIBUTES_OF_FUNCTIONS = frozenset(
    {
        ir.AttributeType.INT,
        ir.AttributeType.INTS,
        ir.AttributeType.FLOAT,
        ir.AttributeType.FLOATS,
        ir.AttributeType.STRING,
        ir.AttributeType.STRINGS,
    }
)


@dataclass(slots=True)
class Structure:
    """`key` is equal for calls that one function can serve."""

    key: Hashable
    inputs: list[ir.Value]
    """What the nodes read from elsewhere, in the order of first use."""
    attributes: list[ir.Attr]
    """Those whose value may differ between two calls of one function."""


def structure_of(nodes: Sequence[ir.Node]) -> Structure:
    reading = _Reading()
    return Structure(
        tuple(reading.node(node, may_differ=True) for node in nodes),
        reading.inputs,
        reading.attributes,
    )


def values_of(nodes: Iterator[ir.Node] | Sequence[ir.Node]) -> Iterator[ir.Value]:
    """All that the nodes and their bodies define, in an order that the structure decides."""
    for node in nodes:
        yield from node.outputs
        for body in subgraphs_of(node):
            yield from body.inputs
            yield from body.initializers.values()
            yield from values_of(tuple(body))


@dataclass(slots=True)
class _Reading:
    names: dict[ir.Value, int] = field(default_factory=dict)
    inputs: list[ir.Value] = field(default_factory=list)
    attributes: list[ir.Attr] = field(default_factory=list)

    def node(self, node: ir.Node, may_differ: bool) -> Hashable:
        inputs = tuple(self._read(value) for value in node.inputs)
        attributes = tuple(
            (name, self._attribute(attribute, may_differ))
            for name, attribute in sorted(node.attributes.items())
        )
        outputs = tuple(self._defined(value) for value in node.outputs)
        return node.op_identifier(), inputs, attributes, outputs

    def _read(self, value: ir.Value | None) -> int | None:
        if value is None:
            return None
        if value not in self.names:
            self.inputs.append(value)
            self._defined(value)
        return self.names[value]

    def _defined(self, value: ir.Value) -> int:
        self.names[value] = len(self.names)
        # An output without a name is one that is not computed.
        return -1 if value.name == "" else self.names[value]

    def _attribute(self, attribute: ir.Attr, may_differ: bool) -> Hashable:
        if attribute.is_ref():
            return attribute_key(attribute)
        if attribute.type == ir.AttributeType.GRAPH:
            return self._body(attribute.as_graph())
        if attribute.type == ir.AttributeType.GRAPHS:
            return tuple(self._body(graph) for graph in attribute.as_graphs())
        if may_differ and attribute.type in _ATTRIBUTES_OF_FUNCTIONS:
            self.attributes.append(attribute)
            return attribute.type
        key = attribute_key(attribute)
        return id(attribute) if key is None else key

    def _body(self, graph: ir.Graph) -> Hashable:
        inputs = tuple(self._defined(value) for value in graph.inputs)
        initializers = tuple(
            (
                self._defined(value),
                None
                if value.const_value is None
                else attribute_key(ir.AttrTensor("value", value.const_value)),
            )
            for value in graph.initializers.values()
        )
        nodes = tuple(self.node(node, may_differ=False) for node in graph)
        outputs = tuple(self._read(value) for value in graph.outputs)
        return inputs, initializers, nodes, outputs
