"""Opset 18 to 17."""

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
    constant_of,
    input_of,
    rank_of,
    required_input,
    static_dim,
)
from sardonyx.legalize.rewrites.index_arithmetic import joined, sizes_of
from sardonyx.legalize.rewrites.scatter import scatter_elements_in_turn, scatter_nd_in_turn

BOUNDARY = Boundary(17, functions=["CenterCropPad"])

# What these reductions still compute when they reduce over no axis at all.
_ELEMENTWISE_PART = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}


@BOUNDARY.rewrite(*REDUCTIONS)
def reduction(b: Emitter, node: ir.Node) -> ir.Value:
    x, axes = required_input(node, 0), constant_axes(node)
    if not axes and node.attributes.get_int("noop_with_empty_axes", 0) == 1:
        if node.op_type == "ReduceSumSquare":
            return b.Mul(x, x)
        elementwise = _ELEMENTWISE_PART.get(node.op_type)
        return x if elementwise is None else b.node(elementwise, [x])[0]
    return b.again([x], axes=axes or None, noop_with_empty_axes=None)[0]


@BOUNDARY.rewrite("Split")
def split(b: Emitter, node: ir.Node) -> Sequence[ir.Value] | None:
    if "num_outputs" not in node.attributes:
        return None
    x, axis = required_input(node, 0), node.attributes.get_int("axis", 0)
    parts, size = node.attributes["num_outputs"].as_int(), static_dim(x, axis)
    if size is not None:
        chunk = -(-size // parts)
        if chunk * (parts - 1) > size:
            raise InexpressibleError(f"{size} elements cannot be split into {parts} parts")
        sizes = b.ints(*[chunk] * (parts - 1), size - chunk * (parts - 1))
        if size % parts == 0:
            return b.again([x], num_outputs=None)
    else:
        length = b.dim(x, axis)
        chunk_length = b.Div(b.Add(length, b.ints(parts - 1)), b.ints(parts))
        rest = b.Sub(length, b.Mul(chunk_length, b.ints(parts - 1)))
        sizes = b.Concat(*[chunk_length] * (parts - 1), rest, axis=0)
    return b.again([x, sizes], num_outputs=None)


def spread_over_axes(
    b: Emitter, base: ir.Value, given: ir.Value, axes: Sequence[int], rank: int
) -> ir.Value:
    """`base` (one element per axis) with the elements of `given` at `axes`."""
    given_data, base_data = constant_of(given), constant_of(base)
    if given_data is not None and base_data is not None and given.dtype is not None:
        data = np.array(base_data)
        data[list(axes)] = given_data
        return b.const(data, given.dtype)
    position = {axis: rank + index for index, axis in enumerate(axes)}
    order = b.ints(*(position.get(axis, axis) for axis in range(rank)))
    return b.Gather(b.Concat(base, given, axis=0), order, axis=0)


@BOUNDARY.rewrite("Pad")
def pad(b: Emitter, node: ir.Node) -> ir.Value | None:
    axes = constant_axes(node, 3)
    if axes is None:
        return None
    x, pads = required_input(node, 0), required_input(node, 1)
    rank = known_rank(x)
    both_ends = [axis % rank + end for end in (0, rank) for axis in axes]
    all_pads = spread_over_axes(b, b.ints(*[0] * 2 * rank), pads, both_ends, 2 * rank)
    return b.again([x, all_pads, input_of(node, 2)])[0]


@BOUNDARY.rewrite("Resize")
def resize(b: Emitter, node: ir.Node) -> ir.Value:
    x, roi, scales, sizes = required_input(node, 0), *(input_of(node, i) for i in (1, 2, 3))
    if node.attributes.get_int("antialias", 0) and not _only_enlarges(x, scales, sizes, node):
        raise InexpressibleError("antialiasing came with opset 18")
    if node.attributes.get_string("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise InexpressibleError("keep_aspect_ratio_policy came with opset 18")
    if "axes" in node.attributes:
        rank = known_rank(x)
        axes = [axis % rank for axis in node.attributes["axes"].as_ints()]
        if roi is not None and static_dim(roi, 0) != 0:
            both_ends = [axis + end for end in (0, rank) for axis in axes]
            whole = b.const([0.0] * rank + [1.0] * rank, roi.dtype or ir.DataType.FLOAT)
            roi = spread_over_axes(b, whole, roi, both_ends, 2 * rank)
        if scales is not None and static_dim(scales, 0) != 0:
            ones = b.const([1.0] * rank, ir.DataType.FLOAT)
            scales = spread_over_axes(b, ones, scales, axes, rank)
        if sizes is not None:
            sizes = spread_over_axes(b, joined(b, sizes_of(b, x, rank)), sizes, axes, rank)
    dropped = ["axes", "antialias", "keep_aspect_ratio_policy"]
    if node.attributes.get_string("mode", "nearest") == "linear":
        dropped.append("exclude_outside")  # of two neighbours, the one inside has all the weight
    return b.again([x, roi, scales, sizes], **dict.fromkeys(dropped))[0]


def _only_enlarges(
    x: ir.Value, scales: ir.Value | None, sizes: ir.Value | None, node: ir.Node
) -> bool:
    """True if no axis is known to shrink, in which case antialiasing changes nothing."""
    factors = constant_of(scales)
    if factors is not None and factors.size:
        return bool((factors >= 1).all())
    targets, rank = constant_of(sizes), rank_of(x)
    if targets is None or rank is None:
        return False
    axes = node.attributes.get_ints("axes") or range(rank)
    dims = [static_dim(x, axis) for axis in axes]
    return all(dim is not None and dim <= int(t) for dim, t in zip(dims, targets, strict=True))


_EXTREMES = {"max": "Max", "min": "Min"}


BOUNDARY.rewrite("ScatterElements")(partial(scatter_elements_in_turn, operators=_EXTREMES))
BOUNDARY.rewrite("ScatterND")(partial(scatter_nd_in_turn, operators=_EXTREMES))


@BOUNDARY.rewrite("Mish")
def mish(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    wide = b.at_least_float32(x)
    return b.cast(b.Mul(wide, b.Tanh(b.Softplus(wide))), x.dtype)


@BOUNDARY.rewrite("BitwiseNot")
def bitwise_not(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    dtype = known_dtype(x)
    all_bits = -1 if dtype.is_signed() else (1 << dtype.bitwidth) - 1
    return b.Sub(b.const(all_bits, dtype), x)


@BOUNDARY.rewrite("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(b: Emitter, node: ir.Node) -> ir.Value:
    x, y = required_input(node, 0), required_input(node, 1)
    bits = known_dtype(x).bitwidth
    shifts = b.const(np.arange(bits, dtype=np.uint64), ir.DataType.UINT64)
    two, last = b.const(2, ir.DataType.UINT64), b.ints(-1)

    def bits_of(value: ir.Value) -> ir.Value:
        """One boolean per bit along a new last axis."""
        unsigned = b.Unsqueeze(b.cast(value, ir.DataType.UINT64), last)
        lowest = b.Mod(b.BitShift(unsigned, shifts, direction="RIGHT"), two)
        return b.cast(lowest, ir.DataType.BOOL)

    logical = {"BitwiseAnd": "And", "BitwiseOr": "Or", "BitwiseXor": "Xor"}[node.op_type]
    chosen = b.node(logical, [bits_of(x), bits_of(y)])[0]
    # ONNX Runtime keeps the last axis of an empty tensor if it is named from the end, and sums
    # int64 through float64, so no sum may need more than its 53 bits.
    rank = rank_of(node.outputs[0])
    bit_axis = last if rank is None else b.ints(rank)

    def half(first: int) -> ir.Value:
        powers = np.arange(bits) - first
        weights = np.where((powers >= 0) & (powers < 32), 1 << (powers % 32), 0)
        weighted = b.Where(chosen, b.const(weights, ir.DataType.INT64), b.ints(0))
        return b.ReduceSum(weighted, bit_axis, keepdims=0)

    total = half(0)
    if bits > 32:
        total = b.Add(total, b.Mul(half(32), b.const(1 << 32, ir.DataType.INT64)))
    return b.cast(total, x.dtype)


@BOUNDARY.rewrite("Col2Im")
def col2im(b: Emitter, node: ir.Node) -> ir.Value:
    x, image_shape = required_input(node, 0), required_input(node, 1)
    block = constant_of(required_input(node, 2))
    if block is None:
        raise InexpressibleError("its block shape is computed by the model")
    rank = len(block)
    strides = node.attributes.get_ints("strides") or [1] * rank
    dilations = node.attributes.get_ints("dilations") or [1] * rank
    pads = node.attributes.get_ints("pads") or [0] * 2 * rank
    zero, one = (b.const(number, ir.DataType.INT64) for number in (0, 1))

    padded = b.Add(image_shape, b.ints(*(pads[i] + pads[i + rank] for i in range(rank))))
    # The flat position in the padded image of every block element (first) and block (last).
    flat: ir.Value | None = None
    for i in range(rank):
        reach = int(dilations[i]) * (int(block[i]) - 1)
        extent = b.Gather(padded, b.const(i, ir.DataType.INT64), axis=0)
        room = b.Sub(extent, b.const(reach + 1, ir.DataType.INT64))
        stride = b.const(int(strides[i]), ir.DataType.INT64)
        starts = b.Mul(b.Range(zero, b.Add(b.Div(room, stride), one), one), stride)
        offsets = b.ints(*(int(dilations[i]) * k for k in range(int(block[i]))))
        positions = b.Add(
            b.Reshape(offsets, b.ints(-1, *[1] * (2 * rank - 1 - i))),
            b.Reshape(starts, b.ints(-1, *[1] * (rank - 1 - i))),
        )
        flat = positions if flat is None else b.Add(b.Mul(flat, extent), positions)
    if flat is None:
        raise InexpressibleError("its block shape is empty")

    channels = b.Div(b.dim(x, 1), b.ints(int(np.prod(block))))
    images = b.Concat(b.dim(x, 0), channels, axis=0)
    columns = b.Reshape(x, b.Concat(images, b.ints(-1), axis=0))
    zero_of_x = b.const_like(0, like=x)
    area = b.ReduceProd(padded, axes=[0], keepdims=1)
    canvas = b.Expand(zero_of_x, b.Concat(images, area, axis=0))
    indices = b.Expand(b.Reshape(flat, b.ints(1, 1, -1)), b.Shape(columns))
    summed = b.ScatterElements(canvas, indices, columns, axis=2, reduction="add")
    image = b.Reshape(summed, b.Concat(images, padded, axis=0))
    if not any(pads):
        return image
    return b.Pad(image, b.ints(0, 0, *(-p for p in pads[:rank]), 0, 0, *(-p for p in pads[rank:])))
