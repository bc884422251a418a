"""All passes, in order, until none of them finds anything to do."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.optimize.cancel_squeezes import CancelSqueezes
from sardonyx.optimize.common_subexpressions import CommonSubexpressions
from sardonyx.optimize.deduplicate_constants import DeduplicateConstants
from sardonyx.optimize.facts import REPLACEABLE
from sardonyx.optimize.fold_batch_norm import FoldBatchNorm
from sardonyx.optimize.fold_shapes import FoldShapes
from sardonyx.optimize.pack_int4 import PackInt4
from sardonyx.optimize.remove_identities import RemoveIdentities
from sardonyx.optimize.remove_unused import RemoveUnused
from sardonyx.optimize.rewrite import NodePass, RewriteNodes
from sardonyx.optimize.simplify_casts import SimplifyCasts
from sardonyx.optimize.simplify_expands import SimplifyExpands
from sardonyx.optimize.simplify_reshapes import SimplifyReshapes
from sardonyx.optimize.simplify_slices import SimplifySlices
from sardonyx.optimize.simplify_transposes import SimplifyTransposes

_MAX_ROUNDS = 8
"""Every rewrite makes the graph smaller or a chain shorter; most models settle in two rounds."""


def optimize(model: ir.Model, *, fold_parameters: bool = True) -> None:
    """Make the model cheaper in place, with the same results under the same names.

    `fold_parameters=False` takes no initializer for a constant: they will be trained or replaced.
    """
    for initializer in model.graph.initializers.values():
        initializer.meta[REPLACEABLE] = not fold_parameters
    node_passes: list[NodePass] = [
        RemoveIdentities(),
        SimplifyCasts(),
        SimplifyTransposes(),
        SimplifyReshapes(),
        SimplifyExpands(),
        SimplifySlices(),
        CancelSqueezes(),
    ]
    if fold_parameters:
        node_passes.append(FoldBatchNorm())
    passes: list[ir.passes.InPlacePass] = [
        RemoveUnused(),
        FoldShapes(),
        RewriteNodes(node_passes),
        DeduplicateConstants(),
        CommonSubexpressions(),
        PackInt4(),
        RemoveUnused(),
    ]
    for _ in range(_MAX_ROUNDS):
        results = [run(model) for run in passes]
        if not any(result.modified for result in results):
            return
