"""Names that say where in the model a node comes from: `/features/0/Conv`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from sardonyx.lower.onnx_types.subgraphs import graphs_of
from sardonyx.lower.provenance import MODULE_KEY

_NEVER_HALF = frozenset({"CumSum", "Max", "Min", "NonMaxSuppression", "Range", "RoiAlign", "TopK"})
"""What ONNX Runtime's converter to float16 leaves in float32."""


def assign_names(model: ir.Model) -> None:
    """Names every node after its module, every value after its node; unique in the whole model.

    Inputs, outputs and initializers of the model keep their names, and so do the inputs and outputs
    of its functions. The names follow from the graph alone: the same graph, the same names.
    """
    _unshare_constants(model)
    graph = model.graph
    kept = [*graph.inputs, *graph.outputs, *graph.initializers.values()]
    _Scope(kept).name_nodes(graph)
    for function in model.functions.values():
        _Scope([*function.inputs, *function.outputs]).name_nodes(function)


def _unshare_constants(model: ir.Model) -> None:
    """The converter to float16 names the casts that it places after what they cast alone: two
    nodes that stay in float32 must not read one constant."""
    for graph in graphs_of(model):
        for node in tuple(graph):
            if node.op_type != "Constant" or node.outputs[0].dtype != ir.DataType.FLOAT:
                continue
            value = node.outputs[0]
            for reader, index in [u for u in value.uses() if u[0].op_type in _NEVER_HALF][1:]:
                copied = ir.Value(type=value.type, shape=value.shape)
                attributes = tuple(node.attributes.values())
                copy = ir.Node("", "Constant", [], attributes, outputs=[copied])
                copy.metadata_props.update(node.metadata_props)
                graph.insert_after(node, copy)
                reader.replace_input_with(index, copied)


class _Scope:
    """The names of one model or function, its subgraphs included."""

    def __init__(self, kept: Iterable[ir.Value]) -> None:
        self._kept = set(kept)
        self._value_names = {value.name for value in self._kept if value.name}
        self._node_names: set[str] = set()
        # Where to go on counting for a name that is taken; makes naming linear.
        self._next_suffix: dict[str, int] = {}

    def name_nodes(self, nodes: Iterable[ir.Node]) -> None:
        for node in nodes:
            name = self._unique(_node_name(node), self._node_names)
            node.name = name
            for index, output in enumerate(node.outputs):
                # An empty name marks an omitted optional output.
                if output.name != "":
                    self._name_value(output, f"{name}_output_{index}")
            for attribute, subgraph in _subgraphs(node):
                self._name_subgraph(f"{name}_{attribute}", subgraph)

    def _name_subgraph(self, prefix: str, subgraph: ir.Graph) -> None:
        subgraph.name = prefix
        for index, value in enumerate(subgraph.inputs):
            self._name_value(value, f"{prefix}_input_{index}")
        for value in list(subgraph.initializers.values()):
            if value not in self._kept:
                self._name_value(value, value.name or f"{prefix}_initializer")
        self.name_nodes(subgraph)

    def _name_value(self, value: ir.Value, wanted: str) -> None:
        if value not in self._kept:
            self._kept.add(value)
            value.name = self._unique(wanted, self._value_names)

    def _unique(self, wanted: str, taken: set[str]) -> str:
        name = wanted
        while name in taken:
            suffix = self._next_suffix.get(wanted, 1)
            self._next_suffix[wanted] = suffix + 1
            name = f"{wanted}_{suffix}"
        taken.add(name)
        return name


def _node_name(node: ir.Node) -> str:
    module = node.metadata_props.get(MODULE_KEY, "")
    return "/".join(["", *filter(None, module.split(".")), node.op_type])


def _subgraphs(node: ir.Node) -> Iterator[tuple[str, ir.Graph]]:
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.name, attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            for index, graph in enumerate(attribute.as_graphs()):
                yield f"{attribute.name}_{index}", graph
