"""Opset 20 to 19."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError
from sardonyx.legalize.emitter import (
    Emitter,
    constant_int,
    input_of,
    rank_of,
    required_input,
    static_dim,
)
from sardonyx.legalize.rewrites.grid_sampling import sample_by_gathering

BOUNDARY = Boundary(19)


@BOUNDARY.rewrite("Gelu")
def gelu(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    wide = b.at_least_float32(x)
    one, half = b.const_like(1.0, like=wide), b.const_like(0.5, like=wide)
    if node.attributes.get_string("approximate", "none") == "tanh":
        cube = b.Mul(b.Mul(b.Mul(wide, wide), wide), b.const_like(0.044715, like=wide))
        slope = b.const_like(math.sqrt(2 / math.pi), like=wide)
        cdf = b.Add(b.Tanh(b.Mul(b.Add(wide, cube), slope)), one)
        return b.cast(b.Mul(b.Mul(wide, half), cdf), x.dtype)
    # The order of these five nodes is the one that runtimes fuse back into Gelu.
    cdf = b.Add(b.Erf(b.Div(wide, b.const_like(math.sqrt(2), like=wide))), one)
    return b.cast(b.Mul(b.Mul(wide, cdf), half), x.dtype)


@BOUNDARY.rewrite("AffineGrid")
def affine_grid(b: Emitter, node: ir.Node) -> ir.Value:
    theta, size = required_input(node, 0), required_input(node, 1)
    length = static_dim(size, 0) or rank_of(node.outputs[0])
    if length not in (4, 5):
        raise InexpressibleError("it is not known whether its grid is 2-D or 3-D")
    spatial = length - 2
    align_corners = node.attributes.get_int("align_corners", 0)
    wide = b.at_least_float32(theta)
    zero, one, two = (b.const(number, ir.DataType.INT64) for number in (0, 1, 2))

    def coordinates(axis: int) -> ir.Value:
        """Positions from -1 to 1 along a spatial axis, shaped to broadcast over the grid."""
        extent = b.Gather(size, b.const(2 + axis, ir.DataType.INT64), axis=0)
        steps = b.Range(zero, extent, one)
        gaps = b.Sub(extent, one)
        # With aligned corners a single position lies at 0, as in PyTorch.
        divisor = b.Max(gaps, one) if align_corners else extent
        numerator = b.Sub(b.Mul(steps, two), gaps)
        dtype = wide.dtype or ir.DataType.FLOAT
        position = b.Div(b.cast(numerator, dtype), b.cast(divisor, dtype))
        return b.Reshape(position, b.ints(-1, *[1] * (spatial - axis)))

    columns = b.node("Split", [wide], {"axis": 2, "num_outputs": spatial + 1}, outputs=spatial + 1)
    shape = b.ints(-1, *[1] * spatial, spatial)
    *directions, grid = (b.Reshape(column, shape) for column in columns)
    # theta's columns go x, y, z and the grid's axes z, y, x.
    for index, direction in enumerate(directions):
        grid = b.Add(grid, b.Mul(coordinates(spatial - 1 - index), direction))
    return b.cast(grid, theta.dtype)


@BOUNDARY.rewrite("GridSample")
def grid_sample(b: Emitter, node: ir.Node) -> ir.Value:
    rank = rank_of(required_input(node, 0))
    if rank is None:
        raise InexpressibleError("the rank of its input is not known to be 4")
    if rank != 4:  # sampling other than of 2-D images came with opset 20
        return sample_by_gathering(b, node)
    mode = node.attributes.get_string("mode", "linear")
    names = {"linear": "bilinear", "cubic": "bicubic"}
    return b.again(mode=names.get(mode, mode))[0]


@BOUNDARY.rewrite("DFT")
def dft(b: Emitter, node: ir.Node) -> ir.Value:
    axis_input = input_of(node, 2)
    axis = -2 if axis_input is None else constant_int(axis_input)
    if axis is None:
        raise InexpressibleError("its axis is computed by the model")
    rank = rank_of(required_input(node, 0))
    if axis < 0 and rank is not None:
        axis += rank
    return b.again(list(node.inputs[:2]), axis=axis)[0]


@BOUNDARY.rewrite("ReduceMax", "ReduceMin")
def reduce_bool(b: Emitter, node: ir.Node) -> ir.Value | None:
    x = required_input(node, 0)
    if x.dtype != ir.DataType.BOOL:
        return None
    reduced = b.again([b.cast(x, ir.DataType.UINT8), *node.inputs[1:]])[0]
    return b.cast(reduced, ir.DataType.BOOL)


@BOUNDARY.rewrite("ConstantOfShape")
def constant_of_shape(b: Emitter, node: ir.Node) -> ir.Value | None:
    tensor = node.attributes.get_tensor("value")
    if tensor is None or tensor.dtype != ir.DataType.BFLOAT16:
        return None
    wide = ir.tensor(np.asarray(tensor.numpy()).astype(np.float32))
    return b.cast(b.again(value=wide)[0], tensor.dtype)
