"""Remove an Expand or Tile that changes nothing."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.optimize.facts import constant_ints, rank, same_shape
from sardonyx.optimize.rewrite import NodePass, bypass


class SimplifyExpands(NodePass):
    op_types = frozenset({"Expand", "Tile"})

    def rewrite(self, node: ir.Node, source: ir.Value) -> bool:
        changes_nothing = same_shape(source, node.outputs[0]) or _repeats_nothing(node, source)
        return changes_nothing and bypass(node, source)


def _repeats_nothing(node: ir.Node, source: ir.Value) -> bool:
    sizes, dims = constant_ints(node.inputs[1]), rank(source)
    if sizes is None or dims is None or source.shape is None or len(sizes) > dims:
        return False
    if node.op_type == "Tile":
        return all(size == 1 for size in sizes)
    trailing = source.shape[dims - len(sizes) :]
    return all(size == 1 or size == dim for size, dim in zip(sizes, trailing, strict=True))
