"""Opset 26 to 25."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError
from sardonyx.legalize.emitter import Emitter, required_input
from sardonyx.legalize.rewrites.cumsum import cumulated_in_turn

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
    return cumulated_in_turn(b, node, "Mul", 1)
