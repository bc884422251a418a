"""Compose transposes of transposes; remove the ones that keep the order of the axes."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.optimize.facts import ints_attribute, rank
from sardonyx.optimize.rewrite import NodePass, bypass


class SimplifyTransposes(NodePass):
    op_types = frozenset({"Transpose"})

    def rewrite(self, node: ir.Node, source: ir.Value) -> bool:
        perm = _perm(node)
        if perm is None:
            return False
        first = source.producer()
        composed = perm
        if first is not None and first.op_type == "Transpose" and first.domain == "":
            origin, first_perm = first.inputs[0], _perm(first)
            if origin is not None and first_perm is not None:
                source, composed = origin, tuple(first_perm[axis] for axis in perm)
        if composed == tuple(range(len(composed))):
            return bypass(node, source)
        if source is node.inputs[0]:
            return False
        node.replace_input_with(0, source)
        node.attributes["perm"] = ir.AttrInt64s("perm", composed)
        return True


def _perm(node: ir.Node) -> tuple[int, ...] | None:
    if "perm" in node.attributes:
        return ints_attribute(node, "perm")
    dims = rank(node.inputs[0])
    if dims is None:
        dims = rank(node.outputs[0])
    return None if dims is None else tuple(reversed(range(dims)))
