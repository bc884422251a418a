"""Positions along axes and arithmetic on sizes, in the operators that opset 9 has."""

from __future__ import annotations

import functools
import math

import numpy as np
import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter, constant_of

_LARGEST_WRITTEN_OUT = 1024


def larger(b: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    """Max of integers, which takes floats only below opset 12."""
    return _computed(b, np.maximum, x, y) or chosen(b, b.Less(x, y), y, x)


def smaller(b: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    """Min of integers."""
    return _computed(b, np.minimum, x, y) or chosen(b, b.Less(y, x), y, x)


def _computed(b: Emitter, function: np.ufunc, x: ir.Value, y: ir.Value) -> ir.Value | None:
    known_x, known_y = constant_of(x), constant_of(y)
    if known_x is None or known_y is None or x.dtype is None:
        return None
    return b.const(function(known_x, known_y), x.dtype)


def chosen(b: Emitter, condition: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """Where; of unsigned 64-bit integers, which runtimes lack a kernel for, by their bits."""
    if x.dtype != ir.DataType.UINT64:
        return b.Where(condition, x, y)
    signed = ir.DataType.INT64
    return b.cast(b.Where(condition, b.cast(x, signed), b.cast(y, signed)), x.dtype)


def clamped(b: Emitter, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    return smaller(b, larger(b, x, low), high)


def positions(b: Emitter, count: ir.Value) -> ir.Value:
    """0, 1, ... for a count that is a 1-D tensor of one element; Range came with opset 11."""
    known = constant_of(count)
    if known is not None and int(known[0]) <= _LARGEST_WRITTEN_OUT:
        return b.ints(*range(int(known[0])))
    ones = b.ConstantOfShape(count, value=ir.tensor(np.array([1], dtype=np.int64)))
    return b.Squeeze(b.NonZero(ones), axes=[0])


def product(b: Emitter, sizes: list[ir.Value]) -> ir.Value:
    """Of sizes that are 1-D tensors of one element."""
    numbers = _known_numbers(sizes)
    return functools.reduce(b.Mul, sizes) if numbers is None else b.ints(math.prod(numbers))


def divided(b: Emitter, size: ir.Value, divisor: int) -> ir.Value:
    known = constant_of(size)
    return b.Div(size, b.ints(divisor)) if known is None else b.ints(int(known[0]) // divisor)


def sizes_of(b: Emitter, x: ir.Value, rank: int) -> list[ir.Value]:
    """Of each axis, as 1-D tensors of one element."""
    return [b.dim(x, axis) for axis in range(rank)]


def joined(b: Emitter, sizes: list[ir.Value]) -> ir.Value:
    """A shape of sizes."""
    numbers = _known_numbers(sizes)
    return b.Concat(*sizes, axis=0) if numbers is None else b.ints(*numbers)


def _known_numbers(sizes: list[ir.Value]) -> list[int] | None:
    known = [constant_of(size) for size in sizes]
    numbers = [int(size[0]) for size in known if size is not None]
    return numbers if len(numbers) == len(sizes) else None


def reshaped(b: Emitter, x: ir.Value, sizes: list[ir.Value]) -> ir.Value:
    """A Reshape to sizes of which one may be known to be 0, which would copy one of the input's."""
    shape = joined(b, sizes)
    known = constant_of(shape)
    if known is None or 0 not in known or x.dtype is None:
        return b.Reshape(x, shape)
    return b.ConstantOfShape(shape, value=ir.tensor([0], dtype=x.dtype))


def counted_from_the_start(b: Emitter, index: ir.Value, size: ir.Value) -> ir.Value:
    """Indices that count from the end where they are negative."""
    zero = b.const(0, ir.DataType.INT64)
    return b.Where(b.Less(index, zero), b.Add(index, size), index)
