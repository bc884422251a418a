"""Scattering that combines what is written with what is there, one write after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError, known_dtype, known_rank
from sardonyx.legalize.emitter import Emitter, known_dims, rank_of, required_input, static_dim
from sardonyx.legalize.rewrites.index_arithmetic import joined
from sardonyx.legalize.rewrites.linear_indexing import known_ranks
from sardonyx.legalize.rewrites.pad import pad_by_joining


def scatter_elements_in_turn(
    b: Emitter, node: ir.Node, operators: Mapping[str, str]
) -> ir.Value | None:
    """ScatterElements with a reduction that `operators` has an operator for."""
    operator = operators.get(node.attributes.get_string("reduction", "none"))
    if operator is None:
        return None
    data, indices, updates = (required_input(node, index) for index in range(3))
    rank = known_rank(data, "data")
    axis = node.attributes.get_int("axis", 0) % rank

    def step(inner: Emitter, state: ir.Value, index: ir.Value, update: ir.Value) -> ir.Value:
        position = inner.ints(axis)
        index, update = inner.Unsqueeze(index, position), inner.Unsqueeze(update, position)
        current = inner.GatherElements(state, index, axis=axis)
        combined = inner.node(operator, [current, update])[0]
        return inner.ScatterElements(state, index, combined, axis=axis)

    if axis:
        order = [axis, *(a for a in range(rank) if a != axis)]
        indices, updates = (b.Transpose(value, perm=order) for value in (indices, updates))
    return _scattered_in_turn(b, data, indices, updates, axis, operator, step)


def scatter_nd_in_turn(b: Emitter, node: ir.Node, operators: Mapping[str, str]) -> ir.Value | None:
    """ScatterND with a reduction that `operators` has an operator for."""
    operator = operators.get(node.attributes.get_string("reduction", "none"))
    if operator is None:
        return None
    data, indices, updates = (required_input(node, index) for index in range(3))
    _, _, depth = known_ranks(data, indices)
    one_index_each = b.Reshape(indices, b.ints(-1, depth))
    # Updates have the leading axes of the indices, then those of one slice of the data.
    slice_shape = b.Shape(data, start=depth)
    one_slice_each = b.Reshape(updates, b.Concat(b.ints(-1), slice_shape, axis=0))

    def step(inner: Emitter, state: ir.Value, index: ir.Value, update: ir.Value) -> ir.Value:
        first = inner.ints(0)
        index, update = inner.Unsqueeze(index, first), inner.Unsqueeze(update, first)
        current = inner.GatherND(state, index)
        return inner.ScatterND(state, index, inner.node(operator, [current, update])[0])

    return _scattered_in_turn(b, data, one_index_each, one_slice_each, None, operator, step)


def _with_one_more(b: Emitter, x: ir.Value, axis: int, filler: ir.Value) -> ir.Value:
    """Another element at the end of an axis."""
    rank = len(known_dims(x))
    pads = b.ints(*[0] * rank, *(int(a == axis) for a in range(rank)))
    return pad_by_joining(b, x, pads, filler, rank)


def _neutral(operator: str, dtype: ir.DataType) -> int | float | bool:
    if operator in ("Add", "Mul"):
        return 1 if operator == "Mul" else 0
    if dtype.is_floating_point():
        return -math.inf if operator == "Max" else math.inf
    limits = np.iinfo(dtype.numpy())
    return int(limits.min if operator == "Max" else limits.max)


def _one_of(values: ir.Value) -> list[int | None]:
    """The dims of what a Scan takes at a time."""
    if rank_of(values) is None:
        raise InexpressibleError("the ranks of its indices and updates are not known")
    return known_dims(values)[1:]


def _scattered_in_turn(
    b: Emitter,
    data: ir.Value,
    indices: ir.Value,
    updates: ir.Value,
    axis: int | None,
    operator: str,
    step: Callable[[Emitter, ir.Value, ir.Value, ir.Value], ir.Value],
) -> ir.Value:
    """A Scan along the first axis: the writes of a step never meet, so each can read what is there.

    Two things end ONNX Runtime with the process: a Scan over nothing, so that there is always a
    write, if one that changes nothing; and a Scan along another axis of an empty tensor. Indices
    count along `axis`, or rows of them along the first ones if it is None.
    """
    dtype = known_dtype(data)
    indices = b.cast(indices, ir.DataType.INT64)
    if static_dim(updates, 0) not in (None, 0):
        return _scanned(b, data, indices, updates, step)
    first, zero = axis or 0, b.const(0, ir.DataType.INT64)
    neutral = b.const(_neutral(operator, dtype), dtype)
    updates = _with_one_more(b, updates, 0, neutral)
    if static_dim(data, first):
        return _scanned(b, data, _with_one_more(b, indices, 0, zero), updates, step)
    # There may be no element to write to: one more, which is cut off again.
    size = b.dim(data, first)
    depth = 1 if axis is not None else static_dim(indices, -1) or 1
    beyond = joined(b, [size, *[b.ints(0)] * (depth - 1)])
    from_the_start = b.Where(b.Less(indices, zero), b.Add(indices, beyond), indices)
    wider = _with_one_more(b, data, first, neutral)
    places = _with_one_more(b, from_the_start, 0, beyond)
    written = _scanned(b, wider, places, updates, step)
    return b.Slice(written, b.ints(0), size, b.ints(first))


def _scanned(
    b: Emitter,
    data: ir.Value,
    indices: ir.Value,
    updates: ir.Value,
    step: Callable[[Emitter, ir.Value, ir.Value, ir.Value], ir.Value],
) -> ir.Value:
    dtype = known_dtype(data)
    state = b.graph_input("state", dtype, known_dims(data))
    index = b.graph_input("index", ir.DataType.INT64, _one_of(indices))
    update = b.graph_input("update", dtype, _one_of(updates))
    body = b.subgraph(
        [state, index, update], lambda inner: [step(inner, state, index, update)], "scatter_step"
    )
    attributes = {"body": body, "num_scan_inputs": 2}
    return b.node("Scan", [data, indices, updates], attributes)[0]
