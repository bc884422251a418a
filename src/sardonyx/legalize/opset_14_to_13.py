"""Opset 14 to 13."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, known_dtype, known_rank
from sardonyx.legalize.emitter import (
    HALF_DTYPES,
    Emitter,
    constant_of,
    input_of,
    rank_of,
    required_input,
    same_dim,
    static_dim,
)

BOUNDARY = Boundary(13)


@BOUNDARY.rewrite("HardSwish")
def hard_swish(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    return b.Mul(x, b.HardSigmoid(x, alpha=1 / 6, beta=0.5))


@BOUNDARY.rewrite("Relu")
def relu(b: Emitter, node: ir.Node) -> ir.Value | None:
    x = required_input(node, 0)
    if x.dtype is None or not x.dtype.is_integer():
        return None
    return b.Max(x, b.const(0, x.dtype))


@BOUNDARY.rewrite("Trilu")
def trilu(b: Emitter, node: ir.Node) -> ir.Value:
    x, offset = required_input(node, 0), input_of(node, 1)
    dtype = known_dtype(x)
    zero, one = b.const(0, ir.DataType.INT64), b.const(1, ir.DataType.INT64)
    row_count, column_count = (b.Squeeze(b.dim(x, axis), b.ints(0)) for axis in (-2, -1))
    rows = b.Unsqueeze(b.Range(zero, row_count, one), b.ints(1))
    columns = b.Range(zero, column_count, one)
    if offset is not None:
        rows = b.Add(rows, offset)
    upper = node.attributes.get_int("upper", 1)
    dropped = b.Less(columns, rows) if upper else b.Greater(columns, rows)
    return b.Where(dropped, b.const(0, dtype), x)


@BOUNDARY.rewrite("Reshape")
def reshape(b: Emitter, node: ir.Node) -> ir.Value | None:
    if not node.attributes.get_int("allowzero", 0):
        return None
    x, target = required_input(node, 0), required_input(node, 1)
    fixed = _target_without_zeros(x, target, node.outputs[0])
    if fixed is not None:
        return b.again([x, b.ints(*fixed)], allowzero=None)[0]
    rank = static_dim(target, 0)
    if constant_of(target) is not None:
        return b.ConstantOfShape(target, value=ir.tensor([0], dtype=known_dtype(x)))
    if rank == 0:
        return b.again(allowzero=None)[0]
    # A 0 copies a size of the input. The target has one only if the input is empty: an input whose
    # sizes are then all 0 gives what is meant.
    has_elements = b.Min(b.Reshape(b.Size(x), b.ints(1)), b.ints(1))
    if rank is None:
        others = b.Slice(target, b.ints(1), b.ints(2**63 - 1), b.ints(0))
        ones = b.Expand(b.ints(1), b.Shape(others))
        column = b.Reshape(x, b.Concat(b.ints(-1), ones, axis=0))
        sizes = b.Concat(b.ints(1), b.Mul(ones, has_elements), axis=0)
    else:
        column = b.Reshape(x, b.ints(-1, *[1] * (rank - 1)))
        sizes = b.Concat(b.ints(1), *[has_elements] * (rank - 1), axis=0)
    return b.again([b.Tile(column, sizes), target], allowzero=None)[0]


def _target_without_zeros(x: ir.Value, target: ir.Value, out: ir.Value) -> list[int] | None:
    """The shape in numbers: -1 for the one size that is not known, 0 for sizes that `x` has."""
    constant = constant_of(target)
    if constant is not None:
        return None if 0 in constant else [int(size) for size in constant]
    if out.shape is None:
        return None
    known = [size for size in out.shape if isinstance(size, int)]
    unknown = [axis for axis, size in enumerate(out.shape) if not isinstance(size, int)]
    if 0 in known:
        return None
    if len(unknown) == 1:
        return [size if isinstance(size, int) else -1 for size in out.shape]
    rank = rank_of(x)
    if rank is None or not all(axis < rank and same_dim(x, axis, out, axis) for axis in unknown):
        return None
    return [size if isinstance(size, int) else 0 for size in out.shape]


@BOUNDARY.rewrite("BatchNormalization")
def batch_normalization(b: Emitter, node: ir.Node) -> Sequence[ir.Value]:
    x, scale, bias, mean, variance = (required_input(node, index) for index in range(5))
    if not node.attributes.get_int("training_mode", 0):
        one_type = mean.dtype if x.dtype in HALF_DTYPES else x.dtype
        inputs = [b.cast(value, one_type) for value in (x, scale, bias, mean, variance)]
        return [b.cast(b.again(inputs, training_mode=None)[0], x.dtype)]
    rank = known_rank(x)
    # In training below 14, the statistics of a batch are outputs that runtimes have no kernel for.
    axes = [axis for axis in range(rank) if axis != 1]
    wide = b.at_least_float32(x)
    batch_mean = b.ReduceMean(wide, axes=axes, keepdims=1)
    centered = b.Sub(wide, batch_mean)
    batch_variance = b.ReduceMean(b.Mul(centered, centered), axes=axes, keepdims=1)
    epsilon = b.const_like(node.attributes.get_float("epsilon", 1e-5), like=wide)
    normalized = b.Div(centered, b.Sqrt(b.Add(batch_variance, epsilon)))
    per_channel = b.ints(-1, *[1] * (rank - 2))
    factor, shift = (b.Reshape(b.cast(v, wide.dtype), per_channel) for v in (scale, bias))
    out = b.cast(b.Add(b.Mul(normalized, factor), shift), x.dtype)
    momentum = node.attributes.get_float("momentum", 0.9)
    running = []
    for old, new in ((mean, batch_mean), (variance, batch_variance)):
        kept = b.Mul(old, b.const_like(momentum, like=old))
        current = b.cast(b.Reshape(new, b.ints(-1)), old.dtype)
        running.append(b.Add(kept, b.Mul(current, b.const_like(1 - momentum, like=old))))
    return [out, *running][: len(node.outputs)]
