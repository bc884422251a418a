"""Opset 17 to 16."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError, known_rank
from sardonyx.legalize.emitter import Emitter, input_of, required_input
from sardonyx.legalize.rewrites.fourier import fourier_transform, framed_fourier_transform

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


@BOUNDARY.rewrite("DFT")
def dft(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    rank = known_rank(x)
    inverse = bool(node.attributes.get_int("inverse", 0))
    onesided = bool(node.attributes.get_int("onesided", 0))
    if inverse and onesided:
        raise InexpressibleError("a onesided inverse transform came with opset 20")
    axis = node.attributes.get_int("axis", 1) % rank
    return fourier_transform(b, x, input_of(node, 1), axis, inverse=inverse, onesided=onesided)


@BOUNDARY.rewrite("STFT")
def stft(b: Emitter, node: ir.Node) -> ir.Value:
    onesided = bool(node.attributes.get_int("onesided", 1))
    signal, step = required_input(node, 0), required_input(node, 1)
    window, length = input_of(node, 2), input_of(node, 3)
    return framed_fourier_transform(b, signal, step, window, length, onesided=onesided)
