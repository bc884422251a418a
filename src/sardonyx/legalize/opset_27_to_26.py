"""Opset 27 to 26."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary
from sardonyx.legalize.emitter import HALF_DTYPES, Emitter, required_input

BOUNDARY = Boundary(26, functions=["CausalConvWithState", "LinearAttention"])


@BOUNDARY.rewrite("Range")
def range_(b: Emitter, node: ir.Node) -> ir.Value | None:
    start = required_input(node, 0)
    if start.dtype not in HALF_DTYPES:
        return b.again(stash_type=None)[0]
    bounds = [b.cast(required_input(node, index), ir.DataType.FLOAT) for index in range(3)]
    return b.cast(b.Range(*bounds), start.dtype)
