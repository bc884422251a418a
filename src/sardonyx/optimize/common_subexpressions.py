"""Compute once what is computed twice: same operator, same inputs, same attributes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable

import onnx_ir as ir

from sardonyx.lower.onnx_types.subgraphs import roots_of, subgraphs_of
from sardonyx.optimize.facts import draws, functions_that_run
from sardonyx.optimize.rewrite import remove_node, replace_value
from sardonyx.optimize.tensor_identity import content_key, memory_key

_PURE_DOMAINS = frozenset({"", "ai.onnx.ml"})


class CommonSubexpressions(ir.passes.InPlacePass):
    """A body may reuse what an enclosing graph computed before it, never the other way round."""

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        own = frozenset(model.functions)
        pure_functions = own - functions_that_run(model, lambda node: not _is_pure(node, own))
        modified = False
        for root in roots_of(model):
            modified |= _merge_equal_nodes(root, ChainMap(), pure_functions)
        return ir.passes.PassResult(model, modified=modified)


def _merge_equal_nodes(
    graph: ir.Graph,
    seen: ChainMap[Hashable, ir.Node],
    pure_functions: frozenset[ir.OperatorIdentifier],
) -> bool:
    modified = False
    for node in graph:
        has_bodies = False
        for body in subgraphs_of(node):
            has_bodies = True
            modified |= _merge_equal_nodes(body, seen.new_child(), pure_functions)
        if has_bodies or not _is_pure(node, pure_functions):
            continue
        key = _node_key(node)
        first = node if key is None else seen.setdefault(key, node)
        if first is node or (first.op_type == "Identity" and not _saves_a_use(node)):
            continue
        for output, equal in zip(node.outputs, first.outputs, strict=True):
            replace_value(output, equal)
        remove_node(node)
        modified = True
    return modified


def _saves_a_use(node: ir.Node) -> bool:
    """Two Identities that only name two graph outputs must both stay."""
    return bool(node.outputs[0].uses()) or not node.outputs[0].is_graph_output()


def _is_pure(node: ir.Node, pure_functions: frozenset[ir.OperatorIdentifier]) -> bool:
    if node.domain not in _PURE_DOMAINS:
        return node.op_identifier() in pure_functions
    return not draws(node)


def _node_key(node: ir.Node) -> Hashable | None:
    attributes = []
    for name, attribute in node.attributes.items():
        contents = attribute_key(attribute)
        if contents is None:
            return None
        attributes.append((name, contents))
    if len(attributes) > 1:
        attributes.sort(key=lambda item: item[0])
    inputs = tuple(map(id, node.inputs))
    return (node.op_identifier(), len(node.outputs), inputs, tuple(attributes))


def attribute_key(attribute: ir.Attr) -> Hashable | None:
    if attribute.is_ref():
        return ("reference", attribute.ref_attr_name, attribute.type)
    kind = attribute.type
    if kind in (ir.AttributeType.FLOAT, ir.AttributeType.FLOATS):
        # 0.0 == -0.0 and nan != nan; their text tells them apart and together.
        return (kind, repr(attribute.value))
    if kind in (ir.AttributeType.INT, ir.AttributeType.STRING, ir.AttributeType.INTS):
        return (kind, attribute.value)
    if kind == ir.AttributeType.STRINGS:
        return (kind, tuple(attribute.value))
    if kind == ir.AttributeType.TENSOR:
        contents = content_key(attribute.value)
        return (kind, memory_key(attribute.value) if contents is None else contents)
    return None
