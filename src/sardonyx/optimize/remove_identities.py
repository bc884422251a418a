"""Remove operators that give back their input: Identity, Dropout at inference, Concat of one."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.optimize.facts import constant_ints
from sardonyx.optimize.rewrite import NodePass, bypass


class RemoveIdentities(NodePass):
    op_types = frozenset({"Identity", "Dropout", "Concat"})

    def rewrite(self, node: ir.Node) -> bool:
        source = node.inputs[0] if node.inputs else None
        if source is None or not _gives_back_its_input(node):
            return False
        return bypass(node, source)


def _gives_back_its_input(node: ir.Node) -> bool:
    if node.op_type == "Concat":
        return len(node.inputs) == 1
    if node.op_type == "Dropout":
        return not is_training_dropout(node) and not any(
            mask.uses() or mask.is_graph_output() for mask in node.outputs[1:]
        )
    return True


def is_training_dropout(node: ir.Node) -> bool:
    """Whether the Dropout drops, or may: its training_mode is not known to be false."""
    training_mode = node.inputs[2] if len(node.inputs) > 2 else None
    return training_mode is not None and constant_ints(training_mode) != [0]
