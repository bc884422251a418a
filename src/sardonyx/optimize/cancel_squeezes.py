"""Remove a Squeeze that undoes an Unsqueeze, and an Unsqueeze that undoes a Squeeze."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.optimize.facts import axes_of, rank
from sardonyx.optimize.rewrite import NodePass, bypass

_INVERSE = {"Squeeze": "Unsqueeze", "Unsqueeze": "Squeeze"}


class CancelSqueezes(NodePass):
    op_types = frozenset(_INVERSE)

    def rewrite(self, node: ir.Node, source: ir.Value) -> bool:
        first = source.producer()
        if first is None or first.op_type != _INVERSE[node.op_type] or first.domain != "":
            return False
        origin = first.inputs[0]
        if origin is None:
            return False
        # Both count their axes in the larger of the two ranks.
        if node.op_type == "Squeeze":
            first_axes = axes_of(first, rank(source))
            axes = axes_of(node, rank(source))
        else:
            first_axes = axes_of(first, rank(origin))
            axes = axes_of(node, rank(node.outputs[0]))
        return first_axes is not None and first_axes == axes and bypass(node, origin)
