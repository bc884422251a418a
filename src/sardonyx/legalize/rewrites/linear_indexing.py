"""GatherElements, GatherND and ScatterND by the place of an element in the flattened tensor."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError, known_rank
from sardonyx.legalize.emitter import Emitter, rank_of, required_input, static_dim
from sardonyx.legalize.rewrites.index_arithmetic import (
    counted_from_the_start,
    joined,
    positions,
    product,
    reshaped,
    sizes_of,
)


def gather_elements(b: Emitter, node: ir.Node) -> ir.Value:
    data, indices = required_input(node, 0), required_input(node, 1)
    rank = known_rank(data, "data")
    axis = node.attributes.get_int("axis", 0) % rank
    sizes, counts = sizes_of(b, data, rank), sizes_of(b, indices, rank)
    along = [
        counted_from_the_start(b, b.cast(indices, ir.DataType.INT64), sizes[axis])
        if current == axis
        else b.Reshape(positions(b, counts[current]), b.ints(-1, *[1] * (rank - 1 - current)))
        for current in range(rank)
    ]
    return b.Gather(b.Reshape(data, b.ints(-1)), _place(b, along, sizes), axis=0)


def _place(b: Emitter, along: Sequence[ir.Value], sizes: Sequence[ir.Value]) -> ir.Value:
    """Of an element in a flattened tensor, by its positions along the axes."""
    if not along:
        raise InexpressibleError("its indices are empty")
    place = along[0]
    for position, size in zip(along[1:], sizes[1:], strict=False):
        place = b.Add(b.Mul(place, size), position)
    return place


def _places(
    b: Emitter, indices: ir.Value, sizes: list[ir.Value], depth: int, index_rank: int
) -> ir.Value:
    """Of the slices that the last axis of `indices` names, in a tensor flattened up to them."""
    levels = [b.const(level, ir.DataType.INT64) for level in range(depth)]
    named = [b.Gather(indices, level, axis=index_rank - 1) for level in levels]
    along = [counted_from_the_start(b, *pair) for pair in zip(named, sizes, strict=False)]
    return _place(b, along, sizes)


def known_ranks(data: ir.Value, indices: ir.Value) -> tuple[int, int, int]:
    rank, index_rank, depth = rank_of(data), rank_of(indices), static_dim(indices, -1)
    if rank is None or index_rank is None or depth is None:
        raise InexpressibleError("the ranks of its data and indices are not known")
    return rank, index_rank, depth


def gather_nd(b: Emitter, node: ir.Node) -> ir.Value:
    data, indices = required_input(node, 0), required_input(node, 1)
    rank, index_rank, depth = known_ranks(data, indices)
    sizes = sizes_of(b, data, rank)
    place = _places(b, indices, sizes, depth, index_rank)
    slices = reshaped(b, data, [product(b, sizes[:depth]), *sizes[depth:]])
    return b.Gather(slices, place, axis=0)


def scatter_nd(b: Emitter, node: ir.Node) -> ir.Value:
    data, indices, updates = (required_input(node, index) for index in range(3))
    rank, index_rank, depth = known_ranks(data, indices)
    sizes, counts = sizes_of(b, data, rank), sizes_of(b, indices, index_rank)
    place = _places(b, indices, sizes, depth, index_rank)
    inner, outer = product(b, sizes[depth:]), product(b, counts[:-1])
    slices = reshaped(b, data, [product(b, sizes[:depth]), inner])
    rows = reshaped(b, updates, [outer, inner])
    row_of_each = b.Expand(b.Reshape(place, b.ints(-1, 1)), joined(b, [outer, inner]))
    return reshaped(b, b.Scatter(slices, row_of_each, rows, axis=0), sizes)
