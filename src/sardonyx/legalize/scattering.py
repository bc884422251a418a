"""Scattering that combines what is written with what is there, one write after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError
from sardonyx.legalize.emitter import Emitter, known_dims, rank_of, required_input, static_dim
from sardonyx.legalize.padding import pad_by_joining


def scatter_elements_in_turn(
    b: Emitter, node: ir.Node, operators: Mapping[str, str]
) -> ir.Value | None:
    """ScatterElements with a reduction that `operators` has an operator for."""
    operator = operators.get(node.attributes.get_string("reduction", "none"))
    if operator is None:
        return None
    data, indices, updates = (required_input(node, index) for index in range(3))
    rank = rank_of(data)
    if rank is None:
        raise InexpressibleError("the rank of its data is not known")
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
    return _scattered_in_turn(b, data, indices, updates, operator, step)


def scatter_nd_in_turn(b: Emitter, node: ir.Node, operators: Mapping[str, str]) -> ir.Value | None:
    """ScatterND with a reduction that `operators` has an operator for."""
    operator = operators.get(node.attributes.get_string("reduction", "none"))
    if operator is None:
        return None
    data, indices, updates = (required_input(node, index) for index in range(3))
    rank, index_rank, depth = rank_of(data), rank_of(indices), static_dim(indices, -1)
    if rank is None or index_rank is None or depth is None:
        raise InexpressibleError("the ranks of its data and indices are not known")
    one_index_each = b.Reshape(indices, b.ints(-1, depth))
    # Updates have the leading axes of the indices, then those of one slice of the data.
    slice_shape = b.Shape(data, start=depth)
    one_slice_each = b.Reshape(updates, b.Concat(b.ints(-1), slice_shape, axis=0))

    def step(inner: Emitter, state: ir.Value, index: ir.Value, update: ir.Value) -> ir.Value:
        first = inner.ints(0)
        index, update = inner.Unsqueeze(index, first), inner.Unsqueeze(update, first)
        current = inner.GatherND(state, index)
        return inner.ScatterND(state, index, inner.node(operator, [current, update])[0])

    return _scattered_in_turn(b, data, one_index_each, one_slice_each, operator, step)


def _one_more(b: Emitter, rank: int) -> ir.Value:
    """The pads that add one element at the end of the first axis."""
    return b.ints(*[0] * rank, 1, *[0] * (rank - 1))


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
    operator: str,
    step: Callable[[Emitter, ir.Value, ir.Value, ir.Value], ir.Value],
) -> ir.Value:
    """A Scan along the first axis: the writes of a step never meet, so each can read what is there.

    Two things end ONNX Runtime with the process: a Scan over nothing, so that there is always a
    write, if one that changes nothing; and a Scan along another axis of an empty tensor.
    """
    if data.dtype is None:
        raise InexpressibleError("the element type of its data is not known")
    if static_dim(updates, 0) in (None, 0):
        rank = len(known_dims(updates))
        index_rank = len(known_dims(indices))
        neutral = b.const(_neutral(operator, data.dtype), data.dtype)
        updates = pad_by_joining(b, updates, _one_more(b, rank), neutral, rank)
        zero = b.const(0, indices.dtype or ir.DataType.INT64)
        indices = pad_by_joining(b, indices, _one_more(b, index_rank), zero, index_rank)
    state = b.graph_input("state", data.dtype, known_dims(data))
    index = b.graph_input("index", ir.DataType.INT64, _one_of(indices))
    update = b.graph_input("update", data.dtype, _one_of(updates))
    body = b.subgraph(
        [state, index, update], lambda inner: [step(inner, state, index, update)], "scatter_step"
    )
    attributes = {"body": body, "num_scan_inputs": 2}
    return b.node("Scan", [data, b.cast(indices, ir.DataType.INT64), updates], attributes)[0]
