"""Opset 23 to 22."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError, known_rank
from sardonyx.legalize.emitter import Emitter, input_of, rank_of, required_input
from sardonyx.legalize.rewrites.attention import decompose_attention

BOUNDARY = Boundary(22, functions=["Attention"])
_INT64_MAX = (1 << 63) - 1


BOUNDARY.rewrite("Attention")(decompose_attention)


@BOUNDARY.rewrite("RMSNormalization")
def rms_normalization(b: Emitter, node: ir.Node) -> ir.Value:
    x, scale = required_input(node, 0), required_input(node, 1)
    axis = node.attributes.get_int("axis", -1)
    axes = range(axis if axis < 0 else axis - known_rank(x), 0)
    stash = ir.DataType(node.attributes.get_int("stash_type", int(ir.DataType.FLOAT)))
    # stash_type is for half precision: float64 in float32 would lose its digits.
    wide = x if x.dtype == ir.DataType.DOUBLE else b.cast(x, stash)
    mean_square = b.ReduceMean(b.Mul(wide, wide), b.ints(*axes), keepdims=1)
    epsilon = b.const_like(node.attributes.get_float("epsilon", 1e-5), like=wide)
    normalized = b.Div(wide, b.Sqrt(b.Add(mean_square, epsilon)))
    return b.Mul(b.cast(b.cast(normalized, x.dtype), scale.dtype), scale)


@BOUNDARY.rewrite("RotaryEmbedding")
def rotary_embedding(b: Emitter, node: ir.Node) -> ir.Value:
    x, cos, sin = (required_input(node, index) for index in range(3))
    position_ids = input_of(node, 3)
    rank = rank_of(x)
    if rank not in (3, 4):
        raise InexpressibleError("the rank of its input is not known to be 3 or 4")
    packed = rank == 3
    heads = node.attributes.get_int("num_heads", 0)
    split = b.Reshape(x, b.ints(0, 0, heads, -1)) if packed else x
    if position_ids is not None:
        cos, sin = (b.Gather(cache, position_ids, axis=0) for cache in (cos, sin))
    # (B, S, H, D) when unpacked from 3-D and (B, H, S, D) otherwise: caches broadcast over heads.
    cos, sin = (b.Unsqueeze(cache, b.ints(2 if packed else 1)) for cache in (cos, sin))

    last, end = b.ints(3), b.ints(_INT64_MAX)
    rotary_dim = node.attributes.get_int("rotary_embedding_dim", 0)
    rotated, kept = split, None
    if rotary_dim:
        rotated = b.Slice(split, b.ints(0), b.ints(rotary_dim), last)
        kept = b.Slice(split, b.ints(rotary_dim), end, last)
    interleaved = node.attributes.get_int("interleaved", 0)
    if interleaved:
        two = b.ints(2)
        first = b.Slice(rotated, b.ints(0), end, last, two)
        second = b.Slice(rotated, b.ints(1), end, last, two)
    else:
        first, second = b.node("Split", [rotated], {"axis": 3, "num_outputs": 2}, outputs=2)
    real = b.Sub(b.Mul(cos, first), b.Mul(sin, second))
    imaginary = b.Add(b.Mul(sin, first), b.Mul(cos, second))
    if interleaved:
        pairs = [b.Unsqueeze(part, b.ints(4)) for part in (real, imaginary)]
        out = b.Reshape(b.Concat(*pairs, axis=4), b.Shape(rotated))
    else:
        out = b.Concat(real, imaginary, axis=3)
    if kept is not None:
        out = b.Concat(out, kept, axis=3)
    return b.Reshape(out, b.Shape(x)) if packed else out


@BOUNDARY.rewrite("QuantizeLinear")
def quantize_linear(b: Emitter, node: ir.Node) -> ir.Value | None:
    x, scale = required_input(node, 0), required_input(node, 1)
    asked = node.attributes.get_int("precision", 0)
    precision = ir.DataType(asked) if asked else scale.dtype
    # Below 23 the division runs in the one type that x and its scale share.
    inputs = [b.cast(x, precision), b.cast(scale, precision), *node.inputs[2:]]
    return b.again(inputs, precision=None)[0]


@BOUNDARY.rewrite("DequantizeLinear")
def dequantize_linear(b: Emitter, node: ir.Node) -> ir.Value | None:
    asked = node.attributes.get_int("output_dtype", 0)
    if not asked:
        return None
    scale = b.cast(required_input(node, 1), ir.DataType(asked))
    return b.again([node.inputs[0], scale, *node.inputs[2:]], output_dtype=None)[0]
