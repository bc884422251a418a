"""Which outputs of a model are drawn: what the graph says, not what two runs happen to give."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.lower.onnx_types.subgraphs import with_bodies
from sardonyx.optimize.facts import draws, functions_that_run


def random_outputs(model: ir.Model) -> frozenset[str]:
    """The names of the outputs that some random operator leads to."""
    random_functions = functions_that_run(model, draws)
    drawn: set[ir.Value] = set()
    for node in model.graph:
        if any(
            draws(each)
            or each.op_identifier() in random_functions
            or any(value in drawn for value in each.inputs)
            for each in with_bodies([node])
        ):
            drawn.update(node.outputs)
    return frozenset(str(value.name) for value in model.graph.outputs if value in drawn)
