"""Opset 9 to 8."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError
from sardonyx.legalize.emitter import Emitter, constant_of, known_dims, rank_of, required_input

BOUNDARY = Boundary(8)
_INT64 = ir.DataType.INT64


@BOUNDARY.rewrite("Scan")
def scan(b: Emitter, node: ir.Node) -> None:
    raise InexpressibleError("a Scan without a batch came with opset 9")


@BOUNDARY.rewrite("IsNaN")
def is_nan(b: Emitter, node: ir.Node) -> ir.Value:
    x = required_input(node, 0)
    below_one, above_zero = b.Less(x, b.const_like(1.0, x)), b.Greater(x, b.const_like(0.0, x))
    return b.Not(b.Or(below_one, above_zero))


@BOUNDARY.rewrite("Upsample")
def upsample(b: Emitter, node: ir.Node) -> ir.Value:
    scales = constant_of(required_input(node, 1))
    if scales is None:
        raise InexpressibleError("its scales are computed by the model")
    return b.again([required_input(node, 0)], scales=[float(scale) for scale in scales])[0]


@BOUNDARY.rewrite("ConstantOfShape")
def constant_of_shape(b: Emitter, node: ir.Node) -> ir.Value:
    value = node.attributes.get("value")
    number = ir.tensor([0.0], dtype=ir.DataType.FLOAT) if value is None else value.as_tensor()
    return b.Expand(b.constant(number), required_input(node, 0))


@BOUNDARY.rewrite("Flatten")
def flatten(b: Emitter, node: ir.Node) -> ir.Value | None:
    x, axis = required_input(node, 0), node.attributes.get_int("axis", 1)
    if x.dtype is None or x.dtype.is_floating_point():
        return None
    if axis in (0, 1):
        return b.Reshape(x, b.ints(0 if axis else 1, -1))
    raise InexpressibleError("flattening integers came with opset 9")


@BOUNDARY.rewrite("Where")
def where(b: Emitter, node: ir.Node) -> ir.Value:
    """A Gather from both choices, one after the other."""
    condition, x, y = (required_input(node, index) for index in range(3))
    out = node.outputs[0]
    if rank_of(out) is None or None in (dims := known_dims(out)):
        raise InexpressibleError("a choice between tensors of dynamic size came with opset 9")
    sizes = [size for size in dims if size is not None]
    count = math.prod(sizes)
    shape = b.ints(*sizes) if sizes else b.const([], _INT64)
    if count == 0:  # a 0 in the shape of a Reshape would be a size to copy
        return b.Expand(x, shape)

    def flat(value: ir.Value) -> ir.Value:
        spread = value if rank_of(value) == len(sizes) and known_dims(value) == dims else None
        spread = b.Expand(value, shape) if spread is None else spread
        return b.Reshape(spread, b.ints(-1))

    both = b.Concat(flat(y), flat(x), axis=0)
    chosen = b.Mul(b.cast(flat(condition), _INT64), b.ints(count))
    places = b.Add(chosen, b.const(np.arange(count, dtype=np.int64), _INT64))
    return b.Reshape(b.Gather(both, places, axis=0), shape)
