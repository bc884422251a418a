"""Opset 15 to 14."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, known_dtype
from sardonyx.legalize.emitter import HALF_DTYPES, Emitter, rank_of, required_input

BOUNDARY = Boundary(14)


@BOUNDARY.rewrite("Shape")
def shape(b: Emitter, node: ir.Node) -> ir.Value | None:
    start, end = node.attributes.get_int("start", 0), node.attributes.get("end")
    if start == 0 and end is None:
        return None
    x = required_input(node, 0)
    rank = rank_of(x)
    last = (1 << 63) - 1 if end is None else end.as_int()
    whole = b.Shape(x)
    if rank is None:
        return b.Slice(whole, b.ints(start), b.ints(last), b.ints(0))
    return b.Gather(whole, b.ints(*range(rank)[start:last]), axis=0)


@BOUNDARY.rewrite("CastLike")
def cast_like(b: Emitter, node: ir.Node) -> ir.Value:
    return b.Cast(required_input(node, 0), to=int(known_dtype(required_input(node, 1))))


@BOUNDARY.rewrite("Bernoulli")
def bernoulli(b: Emitter, node: ir.Node) -> ir.Value:
    chance = required_input(node, 0)
    drawn = b.RandomUniformLike(chance, seed=node.attributes.get_float("seed"))
    asked = node.attributes.get_int("dtype", 0)
    return b.Cast(b.Less(drawn, chance), to=asked or int(known_dtype(chance)))


@BOUNDARY.rewrite("BatchNormalization")
def batch_normalization(b: Emitter, node: ir.Node) -> list[ir.Value] | None:
    """Scale and bias have the type of the input below, mean and variance share another."""
    x, scale, bias = (required_input(node, index) for index in range(3))
    if scale.dtype == x.dtype:
        return None
    wide = scale.dtype if x.dtype in HALF_DTYPES else x.dtype
    first = (b.cast(value, wide) for value in (x, scale, bias))
    out, *running = b.again([*first, *node.inputs[3:]])
    return [b.cast(out, x.dtype), *running]
