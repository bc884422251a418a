"""Remove operators that give back their input: Identity, Dropout at inference, Concat of one."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.optimize.facts import is_training_dropout
from sardonyx.optimize.rewrite import NodePass, bypass


class RemoveIdentities(NodePass):
    op_types = frozenset({"Identity", "Dropout", "Concat"})

    def rewrite(self, node: ir.Node, source: ir.Value) -> bool:
        return _gives_back_its_input(node) and bypass(node, source)


def _gives_back_its_input(node: ir.Node) -> bool:
    if node.op_type == "Concat":
        return len(node.inputs) == 1
    if node.op_type == "Dropout":
        return not is_training_dropout(node) and not any(
            mask.uses() or mask.is_graph_output() for mask in node.outputs[1:]
        )
    return True
