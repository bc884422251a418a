"""Opset 10 to 9."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError
from sardonyx.legalize.emitter import (
    Emitter,
    constant_int,
    constant_of,
    required_input,
    static_dim,
)
from sardonyx.legalize.rewrites.index_arithmetic import chosen, positions
from sardonyx.legalize.rewrites.quantized_arithmetic import dequantized, quantized
from sardonyx.legalize.rewrites.resize import Sampling, resize_by_gathering
from sardonyx.legalize.rewrites.slicing import constant_slice, slice_by_gathering

BOUNDARY = Boundary(9)


@BOUNDARY.rewrite("IsInf")
def is_inf(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    # The difference is not a number for infinities, and for what is none itself.
    infinite = b.And(b.Not(b.IsNaN(x)), b.IsNaN(b.Sub(x, x)))
    zero = b.const_like(0.0, like=x)
    if not node.attributes.get_int("detect_negative", 1):
        infinite = b.And(infinite, b.Greater(x, zero))
    if not node.attributes.get_int("detect_positive", 1):
        infinite = b.And(infinite, b.Less(x, zero))
    return infinite


@BOUNDARY.rewrite("Mod")
def mod(b: Emitter, node: ir.Node) -> ir.Value:
    x, y = required_input(node, 0), required_input(node, 1)
    if x.dtype is None or not x.dtype.is_integer():
        raise InexpressibleError("remainders of floats came with opset 10")
    # Div takes 32 and 64 bits only.
    wide = x.dtype if x.dtype.bitwidth >= 32 else ir.DataType.INT32
    left, right = b.cast(x, wide), b.cast(y, wide)
    quotient = b.Div(left, right)
    # ONNX Runtime makes z / y of (1 / y) * z for integers too, unless 1 / y is used otherwise.
    is_less = b.Equal(b.cast(quotient, ir.DataType.INT64), b.const(0, ir.DataType.INT64))
    rest = chosen(b, is_less, left, b.Sub(left, b.Mul(quotient, right)))
    if not node.attributes.get_int("fmod", 0) and x.dtype.is_signed():
        # The sign is the divisor's, and a product tells whether the rest has the other one.
        opposite = b.Less(b.Mul(b.Sign(rest), b.Sign(right)), b.const(0, wide))
        rest = b.Where(opposite, b.Add(rest, right), rest)
    return b.cast(rest, x.dtype)


@BOUNDARY.rewrite("ThresholdedRelu")
def thresholded_relu(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    above = b.Greater(x, b.const_like(node.attributes.get_float("alpha", 1.0), like=x))
    return b.Where(above, x, b.const_like(0.0, like=x))


@BOUNDARY.rewrite("Dropout")
def dropout(b: Emitter, node: ir.Node) -> Sequence[ir.Value] | None:
    if len(node.outputs) == 1:
        return None
    x = required_input(node, 0)
    return [b.Identity(x), b.ConstantOfShape(b.Shape(x), value=ir.tensor([True]))]


BOUNDARY.rewrite("QuantizeLinear")(quantized)
BOUNDARY.rewrite("DequantizeLinear")(dequantized)


@BOUNDARY.rewrite("Resize")
def resize(b: Emitter, node: ir.Node) -> ir.Value:
    x, scales = required_input(node, 0), required_input(node, 1)
    mode, factors = node.attributes.get_string("mode", "nearest"), constant_of(scales)
    if factors is not None and (factors >= 1).all():
        return b.Upsample(x, scales, mode=mode)
    return resize_by_gathering(b, x, scales, None, node.outputs[0], Sampling(mode=mode))


@BOUNDARY.rewrite("Slice")
def slice_(b: Emitter, node: ir.Node) -> ir.Value:
    return constant_slice(b, node) or slice_by_gathering(b, node)


@BOUNDARY.rewrite("TopK")
def top_k(b: Emitter, node: ir.Node) -> Sequence[ir.Value]:
    x, axis = required_input(node, 0), node.attributes.get_int("axis", -1)
    count = constant_int(required_input(node, 1))
    if count is not None:
        return b.again([x], k=count)
    length = static_dim(x, axis)
    if length is None:
        raise InexpressibleError("the number of elements to choose is computed by the model")
    chosen = positions(b, b.Reshape(required_input(node, 1), b.ints(1)))
    whole = b.again([x], k=length)
    return [b.Gather(values, chosen, axis=axis) for values in whole]


@BOUNDARY.rewrite("AveragePool", "MaxPool")
def pool(b: Emitter, node: ir.Node) -> Sequence[ir.Value] | None:
    attributes = node.attributes
    if any(dilation != 1 for dilation in attributes.get_ints("dilations") or ()):
        raise InexpressibleError("dilated pooling came with opset 10")
    if not attributes.get_int("ceil_mode", 0):
        return b.again(ceil_mode=None, dilations=None)
    includes_pad = attributes.get_int("count_include_pad", 0)
    if node.op_type == "AveragePool" and includes_pad:
        raise InexpressibleError("averages of padded windows with ceil_mode came with opset 10")
    return b.again(ceil_mode=None, dilations=None, pads=_pads_that_round_up(node))


def _pads_that_round_up(node: ir.Node) -> list[int]:
    """Pads after which the last, incomplete window is one that fits."""
    x, attributes = required_input(node, 0), node.attributes
    kernel = attributes["kernel_shape"].as_ints()
    spatial = len(kernel)
    strides = attributes.get_ints("strides") or [1] * spatial
    pads = list(attributes.get_ints("pads") or [0] * 2 * spatial)
    for axis in range(spatial):
        size, count = static_dim(x, 2 + axis), static_dim(node.outputs[0], 2 + axis)
        if size is None or count is None:
            raise InexpressibleError("ceil_mode came with opset 10")
        needed = (count - 1) * strides[axis] + kernel[axis]
        pads[spatial + axis] += max(needed - (size + pads[axis] + pads[spatial + axis]), 0)
        if pads[spatial + axis] >= kernel[axis]:
            raise InexpressibleError("ceil_mode with windows beside the input came with opset 10")
    return pads
