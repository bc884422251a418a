"""Opset 13 to 12."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, constant_axes, known_rank
from sardonyx.legalize.emitter import Emitter, constant_of, input_of, rank_of, required_input
from sardonyx.legalize.rewrites.quantized_arithmetic import dequantized, is_per_tensor, quantized

BOUNDARY = Boundary(12, refused_dtypes={ir.DataType.BFLOAT16: "bfloat16 came with opset 13"})


@BOUNDARY.rewrite("Squeeze", "Unsqueeze")
def squeeze(b: Emitter, node: ir.Node) -> ir.Value:
    x, axes, rank = required_input(node, 0), constant_axes(node), rank_of(required_input(node, 0))
    if axes == []:
        return x
    if axes is not None and rank is not None:  # in any order, which old inference does not take
        rank += len(axes) if node.op_type == "Unsqueeze" else 0
        axes = sorted(axis % rank for axis in axes)
    return b.again([x], axes=axes)[0]


@BOUNDARY.rewrite("ReduceSum")
def reduce_sum(b: Emitter, node: ir.Node) -> ir.Value:
    x, axes = required_input(node, 0), constant_axes(node)
    if not axes and node.attributes.get_int("noop_with_empty_axes", 0) == 1:
        return x
    return b.again([x], axes=axes or None, noop_with_empty_axes=None)[0]


@BOUNDARY.rewrite("Split")
def split(b: Emitter, node: ir.Node) -> Sequence[ir.Value] | None:
    sizes = input_of(node, 1)
    if sizes is None:
        return None
    x, axis = required_input(node, 0), node.attributes.get_int("axis", 0)
    if (constant := constant_of(sizes)) is not None:
        return b.again([x], split=[int(size) for size in constant])
    parts = []
    start = b.ints(0)
    for index in range(len(node.outputs)):
        end = b.Add(start, b.Gather(sizes, b.ints(index), axis=0))
        parts.append(b.Slice(x, start, end, b.ints(axis)))
        start = end
    return parts


@BOUNDARY.rewrite("Softmax", "LogSoftmax", "Hardmax")
def along_one_axis(b: Emitter, node: ir.Node) -> ir.Value:
    """Below 13 these take all axes from one on: that is one axis if it is the last."""
    x = required_input(node, 0)
    rank = known_rank(x)
    if rank == 0:
        return b.Squeeze(b.again([b.Unsqueeze(x, axes=[0])], axis=0)[0], axes=[0])
    axis, last = node.attributes.get_int("axis", -1) % rank, rank - 1
    if axis == last:
        return b.again(axis=last)[0]
    swapped = list(range(rank))
    swapped[axis], swapped[last] = last, axis
    return b.Transpose(b.again([b.Transpose(x, perm=swapped)], axis=last)[0], perm=swapped)


@BOUNDARY.rewrite("Resize")
def resize(b: Emitter, node: ir.Node) -> ir.Value:
    x, roi, scales, sizes = required_input(node, 0), *(input_of(node, i) for i in (1, 2, 3))
    nothing = b.const([], ir.DataType.FLOAT)
    return b.again([x, roi or nothing, scales or nothing, sizes])[0]


@BOUNDARY.rewrite("QuantizeLinear", "DequantizeLinear")
def quantize_linear(b: Emitter, node: ir.Node) -> ir.Value:
    if is_per_tensor(node):
        return b.again(axis=None)[0]
    return quantized(b, node) if node.op_type == "QuantizeLinear" else dequantized(b, node)
