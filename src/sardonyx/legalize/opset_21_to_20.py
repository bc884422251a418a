"""Opset 21 to 20."""

from __future__ import annotations

import math

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError, known_rank
from sardonyx.legalize.emitter import Emitter, input_of, rank_of, required_input

BOUNDARY = Boundary(20)


@BOUNDARY.rewrite("GroupNormalization")
def group_normalization(b: Emitter, node: ir.Node) -> ir.Value:
    x, scale, bias = (required_input(node, index) for index in range(3))
    groups, rank = node.attributes["num_groups"].as_int(), known_rank(x)
    # Below 21 scale and bias are per group, so the channels' own are applied by hand.
    wide = x
    if node.attributes.get_int("stash_type", int(ir.DataType.FLOAT)) == ir.DataType.FLOAT:
        wide = b.at_least_float32(x)
    ones, zeros = (b.const_like([number] * groups, like=wide) for number in (1.0, 0.0))
    normalized = b.InstanceNormalization(
        b.Reshape(wide, b.ints(*_grouped(x, groups))),
        ones,
        zeros,
        epsilon=node.attributes.get_float("epsilon", 1e-5),
    )
    restored = b.cast(b.Reshape(normalized, b.Shape(x)), x.dtype)
    per_channel = b.ints(-1, *[1] * (rank - 2))
    if rank > 2:
        scale, bias = b.Reshape(scale, per_channel), b.Reshape(bias, per_channel)
    return b.Add(b.Mul(restored, scale), bias)


def _grouped(x: ir.Value, groups: int) -> tuple[int, int, int]:
    """(batch, groups, rest): -1 cannot be worked out beside a batch that is 0 at run time."""
    inner = [] if x.shape is None else [size for size in x.shape[1:] if isinstance(size, int)]
    rest = math.prod(inner)
    if rest == 0 or len(inner) + 1 != rank_of(x):
        return 0, groups, -1
    return -1, groups, rest // groups


@BOUNDARY.rewrite("QuantizeLinear")
def quantize_linear(b: Emitter, node: ir.Node) -> ir.Value:
    if node.attributes.get_int("block_size", 0):
        raise InexpressibleError("blocked quantization came with opset 21")
    asked = node.attributes.get_int("output_dtype", 0)
    x, scale, zero_point = node.inputs[0], required_input(node, 1), input_of(node, 2)
    if zero_point is None and asked:
        zero = ir.tensor([0], dtype=ir.DataType(asked))
        zero_point = b.ConstantOfShape(b.Shape(scale), value=zero)
    return b.again([x, scale, zero_point], output_dtype=None, block_size=None)[0]
