"""Opset 27 to 26."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError
from sardonyx.legalize.emitter import (
    HALF_DTYPES,
    Emitter,
    input_of,
    required_input,
    static_dim,
)
from sardonyx.legalize.rewrites.linear_attention import decompose_linear_attention

BOUNDARY = Boundary(26)
_INT64_MAX = (1 << 63) - 1


@BOUNDARY.rewrite("Range")
def range_(b: Emitter, node: ir.Node) -> ir.Value | None:
    start = required_input(node, 0)
    if start.dtype not in HALF_DTYPES:
        return b.again(stash_type=None)[0]
    bounds = [b.cast(required_input(node, index), ir.DataType.FLOAT) for index in range(3)]
    return b.cast(b.Range(*bounds), start.dtype)


@BOUNDARY.rewrite("CausalConvWithState")
def causal_conv_with_state(b: Emitter, node: ir.Node) -> Sequence[ir.Value]:
    x, weight = required_input(node, 0), required_input(node, 1)
    bias, past = input_of(node, 2), input_of(node, 3)
    channels, kernel = static_dim(weight, 0), static_dim(weight, 2)
    if channels is None or kernel is None:
        raise InexpressibleError("the shape of its weight is not known")
    if past is None:
        padded = b.Pad(x, b.ints(0, 0, kernel - 1, 0, 0, 0))
    else:
        padded = b.Concat(past, x, axis=2)
    out = b.Conv(padded, weight, bias, group=channels, kernel_shape=[kernel])
    if node.attributes.get_string("activation", "none") != "none":
        wide = b.at_least_float32(out)
        out = b.cast(b.Mul(wide, b.Sigmoid(wide)), x.dtype)
    first = b.ints(-(kernel - 1) if kernel > 1 else _INT64_MAX)
    state = b.Slice(padded, first, b.ints(_INT64_MAX), b.ints(2))
    return out, state


BOUNDARY.rewrite("LinearAttention")(decompose_linear_attention)
