"""Opset 24 to 23."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, known_rank
from sardonyx.legalize.emitter import Emitter, input_of, required_input

BOUNDARY = Boundary(23, functions=["Attention"])


@BOUNDARY.rewrite("Swish")
def swish(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    wide = b.at_least_float32(x)
    alpha = node.attributes.get_float("alpha", 1.0)
    gate = wide if alpha == 1 else b.Mul(wide, b.const_like(alpha, like=wide))
    return b.cast(b.Mul(wide, b.Sigmoid(gate)), x.dtype)


@BOUNDARY.rewrite("TensorScatter")
def tensor_scatter(b: Emitter, node: ir.Node) -> ir.Value:
    cache, update = required_input(node, 0), required_input(node, 1)
    write_indices = input_of(node, 2)
    rank = known_rank(cache, "cache")
    axis = node.attributes.get_int("axis", -2) % rank
    zero, one = (b.const(number, ir.DataType.INT64) for number in (0, 1))
    length = b.Squeeze(b.dim(update, axis), b.ints(0))
    positions = b.Reshape(b.Range(zero, length, one), b.ints(-1, *[1] * (rank - 1 - axis)))
    if write_indices is not None:
        starts = b.Reshape(write_indices, b.ints(-1, *[1] * (rank - 1)))
        positions = b.Add(starts, positions)
    if node.attributes.get_string("mode", "linear") == "circular":
        positions = b.Mod(positions, b.dim(cache, axis))
    return b.ScatterElements(cache, b.Expand(positions, b.Shape(update)), update, axis=axis)
