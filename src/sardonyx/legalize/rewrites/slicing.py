"""Slice without its inputs: bounds as attributes, or indices of a Gather."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError, constant_axes
from sardonyx.legalize.emitter import Emitter, constant_of, input_of, required_input, static_dim
from sardonyx.legalize.rewrites.index_arithmetic import clamped, larger, positions


def constant_slice(b: Emitter, node: ir.Node) -> ir.Value | None:
    """As Slice-1, if the bounds are known and no element is skipped."""
    x, starts, ends = (required_input(node, index) for index in range(3))
    axes, steps = _axes_and_steps(node, starts)
    first, last = constant_of(starts), constant_of(ends)
    if first is None or last is None or steps is None or any(step != 1 for step in steps):
        return None
    return b.Slice(x, starts=_ints(first), ends=_ints(last), axes=axes)


def slice_by_gathering(b: Emitter, node: ir.Node) -> ir.Value:
    x, starts, ends = (required_input(node, index) for index in range(3))
    axes, steps = _axes_and_steps(node, starts)
    first, last = constant_of(starts), constant_of(ends)
    for index, axis in enumerate(axes):
        start, end = (
            b.cast(b.Gather(bounds, b.ints(index), axis=0), ir.DataType.INT64)
            if known is None
            else b.ints(int(known[index]))
            for bounds, known in ((starts, first), (ends, last))
        )
        step = steps[index] if steps is not None else None
        if step is None:
            every = b.Gather(required_input(node, 4), b.ints(index), axis=0)
            x = _sliced_by_any_step(b, x, start, end, b.cast(every, ir.DataType.INT64), axis)
        else:
            x = _sliced(b, x, start, end, axis, step)
    return x


def _ints(constant: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[int]:
    return [int(number) for number in constant]


def _axes_and_steps(node: ir.Node, starts: ir.Value) -> tuple[list[int], list[int] | None]:
    """Steps are None where the model computes them."""
    axes, steps_input = constant_axes(node, 3), input_of(node, 4)
    steps = constant_of(steps_input)
    count = static_dim(starts, 0) if axes is None else len(axes)
    if count is None:
        raise InexpressibleError("the number of its axes is not known")
    known_steps = [1] * count if steps_input is None else None
    return (
        list(range(count)) if axes is None else axes,
        known_steps if steps is None else _ints(steps),
    )


def _sliced(
    b: Emitter, x: ir.Value, start: ir.Value, end: ir.Value, axis: int, step: int
) -> ir.Value:
    """Along one axis by a Gather, whose indices are made of bounds that the model computes."""
    known_start, known_end, length = constant_of(start), constant_of(end), static_dim(x, axis)
    if known_start is not None and known_end is not None and length is not None:
        last = int(known_end[0])
        # Below the first element is None for Python, whose -1 is the last.
        stop = None if step < 0 and last < -length else last
        return b.Gather(x, b.ints(*range(length)[int(known_start[0]) : stop : step]), axis=axis)
    size, zero, one = b.dim(x, axis), b.ints(0), b.ints(1)
    low, high = (zero, size) if step > 0 else (b.ints(-1), b.Sub(size, one))
    start, end = (
        clamped(b, b.Where(b.Less(bound, zero), b.Add(bound, size), bound), low, high)
        for bound in (start, end)
    )
    way = b.Sub(end, start) if step > 0 else b.Sub(start, end)
    count = way if abs(step) == 1 else b.Div(b.Add(way, b.ints(abs(step) - 1)), b.ints(abs(step)))
    places = positions(b, larger(b, count, zero))
    if step != 1:
        places = b.Mul(places, b.ints(step))
    return b.Gather(x, b.Add(places, start), axis=axis)


def _sliced_by_any_step(
    b: Emitter, x: ir.Value, start: ir.Value, end: ir.Value, step: ir.Value, axis: int
) -> ir.Value:
    size, zero, one = b.dim(x, axis), b.ints(0), b.ints(1)
    forward = b.Less(zero, step)
    low, high = b.Where(forward, zero, b.ints(-1)), b.Where(forward, size, b.Sub(size, one))
    start, end = (
        clamped(b, b.Where(b.Less(bound, zero), b.Add(bound, size), bound), low, high)
        for bound in (start, end)
    )
    stride = b.Abs(step)
    way = b.Where(forward, b.Sub(end, start), b.Sub(start, end))
    count = b.Div(b.Sub(b.Add(way, stride), one), stride)
    places = positions(b, larger(b, count, zero))
    return b.Gather(x, b.Add(b.Mul(places, step), start), axis=axis)
