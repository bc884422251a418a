"""Which outputs of a model are drawn: what the graph says, not what two runs happen to give."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.lower.onnx_types.subgraphs import with_bodies
from sardonyx.optimize.facts import draws


def random_outputs(model: ir.Model) -> frozenset[str]:
    """The names of the outputs that some random operator leads to."""
    random_functions = _random_functions(model)
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


def _random_functions(model: ir.Model) -> set[ir.OperatorIdentifier]:
    """Those that draw, or call one that does."""
    random: set[ir.OperatorIdentifier] = set()
    while True:
        found = {
            identifier
            for identifier, function in model.functions.items()
            if any(draws(node) or node.op_identifier() in random for node in with_bodies(function))
        }
        if found == random:
            return random
        random = found
