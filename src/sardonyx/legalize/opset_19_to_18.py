"""Opset 19 to 18."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError, constant_axes, known_rank
from sardonyx.legalize.emitter import Emitter, constant_of, required_input

BOUNDARY = Boundary(18)


@BOUNDARY.rewrite("Pad")
def pad(b: Emitter, node: ir.Node) -> ir.Value | None:
    if node.attributes.get_string("mode", "constant") != "wrap":
        return None
    x, pads = required_input(node, 0), required_input(node, 1)
    rank, given = known_rank(x), constant_axes(node, 3)
    axes = list(range(rank)) if given is None else [axis % rank for axis in given]
    amounts = constant_of(pads)
    out = x
    # Wrapping along an axis is a Gather whose indices run past both ends, modulo its size.
    for index, axis in enumerate(axes):
        if amounts is not None and amounts[index] == amounts[index + len(axes)] == 0:
            continue
        before, after = (
            b.Gather(pads, b.const(position, ir.DataType.INT64), axis=0)
            for position in (index, index + len(axes))
        )
        size = b.Squeeze(b.dim(x, axis), b.ints(0))
        steps = b.Range(b.Neg(before), b.Add(size, after), b.const(1, ir.DataType.INT64))
        out = b.Gather(out, b.Mod(steps, size), axis=axis)
    return out


@BOUNDARY.rewrite("Resize")
def resize(b: Emitter, node: ir.Node) -> None:
    mode = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
    if mode == "half_pixel_symmetric":
        raise InexpressibleError("half_pixel_symmetric coordinates came with opset 19")


@BOUNDARY.rewrite("QuantizeLinear")
def quantize_linear(b: Emitter, node: ir.Node) -> ir.Value:
    x, scale = (b.at_least_float32(required_input(node, index)) for index in (0, 1))
    saturate = node.attributes.get_int("saturate", 1)
    return b.again([x, scale, *node.inputs[2:]], saturate=None if saturate else 0)[0]


@BOUNDARY.rewrite("DequantizeLinear")
def dequantize_linear(b: Emitter, node: ir.Node) -> ir.Value:
    scale = required_input(node, 1)
    wide = b.at_least_float32(scale)
    out = b.again([node.inputs[0], wide, *node.inputs[2:]])[0]
    return b.cast(out, scale.dtype)
