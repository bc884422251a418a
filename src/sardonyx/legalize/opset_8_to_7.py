"""Opset 8 to 7."""

from __future__ import annotations

import functools

import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError
from sardonyx.legalize.emitter import (
    Emitter,
    constant_of,
    known_dims,
    rank_of,
    required_input,
    static_dim,
)

BOUNDARY = Boundary(7)


@BOUNDARY.rewrite("Expand")
def expand(b: Emitter, node: ir.Node) -> ir.Value:
    """A Tile, where it is known which axes are repeated."""
    x, target = required_input(node, 0), required_input(node, 1)
    rank, count = rank_of(x), static_dim(target, 0)
    if rank is None or count is None:
        raise InexpressibleError("expanding to an unknown rank came with opset 8")
    if count > rank:
        x, rank = b.Unsqueeze(x, axes=list(range(count - rank))), count
    sizes, numbers = known_dims(x), constant_of(target)
    repeats = []
    for axis, size in enumerate(sizes):
        place = axis - (rank - count)
        number = None if numbers is None or place < 0 else int(numbers[place])
        if place < 0 or number == 1 or (size is not None and size != 1):
            repeats.append(b.ints(1))
        elif size is None:
            raise InexpressibleError("expanding what may be 1 at run time came with opset 8")
        elif number is not None:
            repeats.append(b.ints(number))
        else:
            repeats.append(b.Gather(target, b.ints(place), axis=0))
    return b.Tile(x, b.Concat(*repeats, axis=0)) if repeats else x


def _inputs(node: ir.Node) -> list[ir.Value]:
    return [required_input(node, index) for index in range(len(node.inputs))]


@BOUNDARY.rewrite("Sum")
def total(b: Emitter, node: ir.Node) -> ir.Value:
    return functools.reduce(b.Add, _inputs(node))


@BOUNDARY.rewrite("Mean")
def mean(b: Emitter, node: ir.Node) -> ir.Value:
    values = _inputs(node)
    count = b.const_like(float(len(values)), like=values[0])
    return b.Div(functools.reduce(b.Add, values), count)


@BOUNDARY.rewrite("Max", "Min")
def extreme(b: Emitter, node: ir.Node) -> ir.Value | None:
    """Broadcasting came with opset 8; a number that is known is a bound."""
    values = _inputs(node)
    if all(value.shape is not None and value.shape == values[0].shape for value in values):
        return None
    bound = "min" if node.op_type == "Max" else "max"
    for bounded, other in (values, reversed(values)) if len(values) == 2 else ():
        number = constant_of(other)
        is_float = bounded.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16)
        if number is not None and number.size == 1 and is_float and rank_of(other) == 0:
            return b.Clip(bounded, **{bound: float(number)})
    raise InexpressibleError(f"{node.op_type} with broadcasting came with opset 8")
