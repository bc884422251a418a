"""Opset 11 to 10."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx_ir as ir

from sardonyx.legalize.boundary import (
    REDUCTIONS,
    Boundary,
    InexpressibleError,
    constant_axes,
    known_dtype,
    known_rank,
)
from sardonyx.legalize.emitter import (
    Emitter,
    constant_int,
    constant_of,
    input_of,
    required_input,
    static_dim,
)
from sardonyx.legalize.rewrites import linear_indexing
from sardonyx.legalize.rewrites.branch_shapes import with_open_shapes
from sardonyx.legalize.rewrites.cumsum import cumulated_in_turn
from sardonyx.legalize.rewrites.index_arithmetic import (
    counted_from_the_start,
    divided,
    larger,
    positions,
    product,
    reshaped,
    sizes_of,
)
from sardonyx.legalize.rewrites.pad import pad_by_joining
from sardonyx.legalize.rewrites.quantized_arithmetic import round_half_to_even
from sardonyx.legalize.rewrites.resize import Sampling, constant_scales, resize_by_gathering

BOUNDARY = Boundary(10)
_FLOATS = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)


BOUNDARY.rewrite("CumSum")(partial(cumulated_in_turn, operator="Add", neutral=0))
BOUNDARY.rewrite("GatherElements")(linear_indexing.gather_elements)
BOUNDARY.rewrite("GatherND")(linear_indexing.gather_nd)
BOUNDARY.rewrite("If")(with_open_shapes)
BOUNDARY.rewrite("ScatterND")(linear_indexing.scatter_nd)


@BOUNDARY.rewrite(
    "ArgMax",
    "ArgMin",
    "Compress",
    "Concat",
    "Flatten",
    "Hardmax",
    "LogSoftmax",
    "Softmax",
    "Split",
)
def axis_from_the_start(b: Emitter, node: ir.Node) -> Sequence[ir.Value] | None:
    """Axes that count from the end came with opset 11."""
    axis = node.attributes.get_int("axis", 0)
    if axis >= 0:
        return None
    return b.again(axis=axis + known_rank(required_input(node, 0)))


@BOUNDARY.rewrite("OneHot")
def one_hot(b: Emitter, node: ir.Node) -> ir.Value:
    indices, depth = required_input(node, 0), required_input(node, 1)
    axis = node.attributes.get_int("axis", -1)
    # Indices that count from the end came with opset 11 too.
    wide = b.cast(indices, ir.DataType.INT64)
    count = b.Reshape(b.cast(depth, ir.DataType.INT64), b.ints(1))
    index = counted_from_the_start(b, wide, count)
    # What is still negative is off everywhere, which any index out of range stands for.
    index = b.Where(b.Less(index, b.const(0, ir.DataType.INT64)), count, index)
    rank = known_rank(indices)
    last = axis if axis in (-1, rank) else axis % (rank + 1)
    return b.again([index, depth, node.inputs[2]], axis=-1 if last == rank else last)[0]


@BOUNDARY.rewrite(*REDUCTIONS, "ReduceSum", "Squeeze", "Unsqueeze")
def axes_from_the_start(b: Emitter, node: ir.Node) -> ir.Value | None:
    axes = node.attributes.get_ints("axes") or ()
    if all(axis >= 0 for axis in axes):
        return None
    rank = known_rank(required_input(node, 0))
    rank += len(axes) if node.op_type == "Unsqueeze" else 0
    return b.again(axes=[axis % rank for axis in axes])[0]


@BOUNDARY.rewrite("Scan")
def scan(b: Emitter, node: ir.Node) -> None:
    for name in ("scan_input_axes", "scan_output_axes"):
        if any(axis < 0 for axis in node.attributes.get_ints(name) or ()):
            raise InexpressibleError("a Scan along axes from the end came with opset 11")


@BOUNDARY.rewrite("Gather")
def gather(b: Emitter, node: ir.Node) -> ir.Value | None:
    """Indices that count from the end came with opset 11; runtimes took them all along."""
    data, indices = required_input(node, 0), required_input(node, 1)
    known, axis = constant_of(indices), node.attributes.get_int("axis", 0)
    size = static_dim(data, axis)
    if known is None or size is None or indices.dtype is None or not (known < 0).any():
        return None
    return b.again([data, b.const(np.where(known < 0, known + size, known), indices.dtype)])[0]


@BOUNDARY.rewrite("ScatterElements")
def scatter_elements(b: Emitter, node: ir.Node) -> ir.Value:
    return b.Scatter(*node.inputs, axis=node.attributes.get_int("axis", 0))


@BOUNDARY.rewrite("Slice")
def slice_(b: Emitter, node: ir.Node) -> ir.Value | None:
    axes = constant_axes(node, 3)
    if axes is None or all(axis >= 0 for axis in axes):
        return None
    rank = known_rank(required_input(node, 0))
    from_the_start = b.ints(*(axis % rank for axis in axes))
    inputs = [b.cast(value, ir.DataType.INT64) for value in node.inputs[1:3] if value is not None]
    steps = input_of(node, 4)
    wide_steps = None if steps is None else b.cast(steps, ir.DataType.INT64)
    return b.again([node.inputs[0], *inputs, from_the_start, wide_steps])[0]


@BOUNDARY.rewrite("Clip")
def clip(b: Emitter, node: ir.Node) -> ir.Value:
    x, low, high = required_input(node, 0), input_of(node, 1), input_of(node, 2)
    bounds = [None if bound is None else constant_of(bound) for bound in (low, high)]
    given = [bound for bound in (low, high) if bound is not None]
    is_exact = x.dtype != ir.DataType.DOUBLE and len(given) == sum(k is not None for k in bounds)
    if is_exact:
        least, most = (None if bound is None else float(bound.reshape(())) for bound in bounds)
        if least is None or most is None or least <= most:
            return b.again([x], min=least, max=most)[0]
    if low is not None:
        x = b.Max(x, low)
    return x if high is None else b.Min(x, high)


@BOUNDARY.rewrite("Gemm")
def gemm(b: Emitter, node: ir.Node) -> ir.Value | None:
    if input_of(node, 2) is not None:
        return None
    left, right = required_input(node, 0), required_input(node, 1)
    return b.again([left, right, b.const_like([0.0], like=left)])[0]


@BOUNDARY.rewrite("Equal")
def equal(b: Emitter, node: ir.Node) -> ir.Value | None:
    x, y = required_input(node, 0), required_input(node, 1)
    if x.dtype in _FLOATS:
        apart = b.Or(b.Less(x, y), b.Greater(x, y))
        # A sum is not a number if one of the two is not; those of opposite infinities are apart.
        return b.Not(b.Or(apart, b.IsNaN(b.Add(x, y))))
    if x.dtype == ir.DataType.UINT64:  # other values stay other values
        return b.Equal(b.cast(x, ir.DataType.INT64), b.cast(y, ir.DataType.INT64))
    return None


@BOUNDARY.rewrite("Round")
def round_(b: Emitter, node: ir.Node) -> ir.Value:
    return round_half_to_even(b, required_input(node, 0))


@BOUNDARY.rewrite("Range")
def range_(b: Emitter, node: ir.Node) -> ir.Value:
    start, limit, delta = (required_input(node, index) for index in range(3))
    dtype = known_dtype(start)
    one, zero = b.ints(1), b.ints(0)
    scalar = b.ints(1)
    if dtype in _FLOATS:
        steps = b.cast(b.Ceil(b.Div(b.Sub(limit, start), delta)), ir.DataType.INT64)
        count = larger(b, b.Reshape(steps, scalar), zero)
    else:
        first, last, step = (
            b.Reshape(b.cast(value, ir.DataType.INT64), scalar) for value in (start, limit, delta)
        )
        if constant_int(delta) == 1:
            count = b.Sub(last, first)
        else:
            size = b.Abs(step)
            way = b.Mul(b.Sub(last, first), b.Sign(step))
            count = b.Div(b.Sub(b.Add(way, size), one), size)
        count = larger(b, count, zero)
    return b.Add(b.Mul(b.cast(positions(b, count), dtype), delta), start)


@BOUNDARY.rewrite("DepthToSpace")
def depth_to_space(b: Emitter, node: ir.Node) -> ir.Value | None:
    if node.attributes.get_string("mode", "DCR") == "DCR":
        return b.again(mode=None)[0]
    x, block = required_input(node, 0), node.attributes["blocksize"].as_int()
    batch, channels, height, width = sizes_of(b, x, 4)
    size = b.ints(block)
    fewer = divided(b, channels, block * block)
    apart = reshaped(b, x, [batch, fewer, size, size, height, width])
    together = b.Transpose(apart, perm=[0, 1, 4, 2, 5, 3])
    taller, wider = product(b, [height, size]), product(b, [width, size])
    return reshaped(b, together, [batch, fewer, taller, wider])


@BOUNDARY.rewrite("TopK")
def top_k(b: Emitter, node: ir.Node) -> Sequence[ir.Value]:
    x, count = required_input(node, 0), required_input(node, 1)
    axis, dtype = node.attributes.get_int("axis", -1) % known_rank(x), x.dtype
    smallest = not node.attributes.get_int("largest", 1)
    wide = x
    if dtype not in _FLOATS:
        if dtype is None or dtype.bitwidth > 32:
            raise InexpressibleError("choosing among 64-bit integers came with opset 11")
        wide = b.cast(x, ir.DataType.DOUBLE)
    if smallest:
        wide = b.Neg(wide)
    values, indices = b.again([wide, count], axis=axis, largest=None, sorted=None)
    return [b.cast(b.Neg(values) if smallest else values, dtype), indices]


@BOUNDARY.rewrite("Pad")
def pad(b: Emitter, node: ir.Node) -> ir.Value:
    x, pads, filler = required_input(node, 0), required_input(node, 1), input_of(node, 2)
    mode, rank, amounts = (
        node.attributes.get_string("mode", "constant"),
        known_rank(x),
        constant_of(pads),
    )
    value = 0.0 if filler is None else constant_of(filler)
    dtype = known_dtype(x)
    if amounts is not None and dtype in _FLOATS:
        number = None if value is None else float(np.reshape(value, ()))
        if mode != "constant" or (number is not None and np.float32(number) == number):
            attributes = {"pads": [int(amount) for amount in amounts], "value": number or 0.0}
            return b.again([x], **attributes)[0]
    if mode != "constant":
        raise InexpressibleError("padding integers, or by computed amounts, came with opset 11")
    filler = b.const(0, dtype) if filler is None else filler
    return pad_by_joining(b, x, pads, filler, rank)


@BOUNDARY.rewrite("Resize")
def resize(b: Emitter, node: ir.Node) -> ir.Value:
    x, scales, sizes = required_input(node, 0), input_of(node, 2), input_of(node, 3)
    if sizes is not None:
        scales = None
    if node.attributes.get_int("exclude_outside", 0):
        raise InexpressibleError("exclude_outside came with opset 11")
    sampling = Sampling(
        mode=node.attributes.get_string("mode", "nearest"),
        coordinates=node.attributes.get_string("coordinate_transformation_mode", "half_pixel"),
        nearest_mode=node.attributes.get_string("nearest_mode", "round_prefer_floor"),
    )
    if sampling == Sampling():
        factors = constant_scales(x, scales, sizes, node.outputs[0])
        if factors is not None and (factors >= 1).all():  # runtimes differ on the others
            return b.Resize(x, b.const(factors, ir.DataType.FLOAT), mode="nearest")
    return resize_by_gathering(b, x, scales, sizes, node.outputs[0], sampling)
