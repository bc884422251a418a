"""CumSum and CumProd as a Scan."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError, known_dtype, known_rank
from sardonyx.legalize.emitter import Emitter, constant_int, known_dims, required_input
from sardonyx.legalize.rewrites.index_arithmetic import joined, sizes_of
from sardonyx.legalize.rewrites.pad import pad_by_joining


def cumulated_in_turn(b: Emitter, node: ir.Node, operator: str, neutral: int) -> ir.Value:
    x, axis = required_input(node, 0), constant_int(required_input(node, 1))
    rank, dtype = known_rank(x), known_dtype(x)
    if axis is None:
        raise InexpressibleError("its axis is computed by the model")
    axis %= rank
    dims = known_dims(x)
    if 0 in dims:
        return x
    # Two things end ONNX Runtime with the process: a Scan over nothing, and one along another axis
    # than the first of an empty tensor.
    order = [axis, *(a for a in range(rank) if a != axis)]
    scanned = b.Transpose(x, perm=order) if axis else x
    length, *rest = (sizes_of(b, x, rank)[a] for a in order)
    may_be_empty = dims[axis] is None
    if may_be_empty:
        one_more = b.ints(*[0] * rank, 1, *[0] * (rank - 1))
        scanned = pad_by_joining(b, scanned, one_more, b.const(neutral, dtype), rank)
    nothing = b.ConstantOfShape(joined(b, rest), value=ir.tensor([neutral], dtype=dtype))
    results = _scanned(b, node, scanned, nothing, [dims[a] for a in order[1:]], operator)
    if may_be_empty:
        results = b.Slice(results, b.ints(0), length, b.ints(0))
    return b.Transpose(results, perm=[order.index(a) for a in range(rank)]) if axis else results


def _scanned(
    b: Emitter,
    node: ir.Node,
    x: ir.Value,
    nothing: ir.Value,
    rest_dims: list[int | None],
    operator: str,
) -> ir.Value:
    """Along the first axis."""
    dtype = known_dtype(x)
    state, element = (b.graph_input(name, dtype, rest_dims) for name in ("state", "element"))

    def step(inner: Emitter) -> list[ir.Value]:
        total = inner.node(operator, [state, element])[0]
        excluded = node.attributes.get_int("exclusive", 0)
        return [total, inner.Identity(state if excluded else total)]

    backwards = node.attributes.get_int("reverse", 0)
    attributes = {
        "body": b.subgraph([state, element], step, "cumulative_step"),
        "num_scan_inputs": 1,
        "scan_input_directions": [backwards],
        "scan_output_directions": [backwards],
    }
    return b.node("Scan", [nothing, x], attributes, outputs=2)[1]
