"""Opset 17 to 16."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, known_rank
from sardonyx.legalize.emitter import Emitter, input_of, required_input

BOUNDARY = Boundary(16)


@BOUNDARY.rewrite("LayerNormalization")
def layer_normalization(b: Emitter, node: ir.Node) -> Sequence[ir.Value]:
    x, scale, bias = required_input(node, 0), required_input(node, 1), input_of(node, 2)
    axis = node.attributes.get_int("axis", -1)
    axes = list(range(axis if axis < 0 else axis - known_rank(x), 0))
    stash = ir.DataType(node.attributes.get_int("stash_type", int(ir.DataType.FLOAT)))
    # stash_type is for half precision: float64 in float32 would lose its digits.
    wide = x if x.dtype == ir.DataType.DOUBLE else b.cast(x, stash)
    mean = b.ReduceMean(wide, axes=axes, keepdims=1)
    centered = b.Sub(wide, mean)
    # The order of these nodes is the one that runtimes fuse back into LayerNormalization.
    square = b.Pow(centered, b.const_like(2.0, like=wide))
    variance = b.ReduceMean(square, axes=axes, keepdims=1)
    epsilon = b.const_like(node.attributes.get_float("epsilon", 1e-5), like=wide)
    deviation = b.Sqrt(b.Add(variance, epsilon))
    out = b.Mul(b.cast(b.Div(centered, deviation), x.dtype), scale)
    if bias is not None:
        out = b.Add(out, bias)
    if len(node.outputs) == 1:
        return [out]
    return [out, mean, b.Reciprocal(deviation)][: len(node.outputs)]
