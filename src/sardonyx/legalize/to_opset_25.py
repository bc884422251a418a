"""Opset 26 to 25."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError, known_dtype, known_rank
from sardonyx.legalize.emitter import Emitter, constant_int, required_input

BOUNDARY = Boundary(25)


@BOUNDARY.rewrite("BitCast")
def bit_cast(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    to = ir.DataType(node.attributes["to"].as_int())
    if x.dtype == to:
        return x
    # Between integers of one width Cast keeps the bits; between other types it converts.
    if x.dtype is None or not (x.dtype.is_integer() and to.is_integer()):
        raise InexpressibleError("bits can be reinterpreted between integer types only")
    return b.cast(x, to)


@BOUNDARY.rewrite("CumProd")
def cum_prod(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    axis, rank, dtype = constant_int(required_input(node, 1)), known_rank(x), known_dtype(x)
    if axis is None:
        raise InexpressibleError("its axis is computed by the model")
    along = axis % rank
    reverse = node.attributes.get_int("reverse", 0)
    # Runtimes do not scan what is empty: one more along every dynamic axis, taken away again.
    dynamic = [a for a in range(rank) if x.shape is None or not isinstance(x.shape[a], int)]
    for a in dynamic:
        item = [b.ints(1) if a == other else b.dim(x, other) for other in range(rank)]
        extra = b.Expand(b.const_like(1, like=x), b.Concat(*item, axis=0))
        x = b.Concat(*((extra, x) if reverse else (x, extra)), axis=a)
    exclusive = node.attributes.get_int("exclusive", 0)

    product_in = b.graph_input("product", dtype, [None] * (rank - 1))
    element = b.graph_input("element", dtype, [None] * (rank - 1))

    def step(inner: Emitter) -> Sequence[ir.Value]:
        product = inner.Mul(product_in, element)
        return product, inner.Identity(product_in if exclusive else product)

    others = [b.dim(x, position) for position in range(rank) if position != along]
    one = b.const_like(1, like=x)
    _, out = b.node(
        "Scan",
        [b.Expand(one, b.Concat(*others, axis=0)) if others else one, x],
        {
            "body": b.subgraph([product_in, element], step, "cumulative_product_step"),
            "num_scan_inputs": 1,
            "scan_input_axes": [along],
            "scan_input_directions": [reverse],
            "scan_output_axes": [along],
            "scan_output_directions": [reverse],
        },
        outputs=2,
    )
    for a in dynamic:
        first, last = (1, 2**63 - 1) if reverse else (0, -1)
        out = b.Slice(out, b.ints(first), b.ints(last), b.ints(a))
    return out
