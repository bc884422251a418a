"""Indexing by tensors: x[i, :, mask] and writes to it, as ATen's index and index_put mean them.

Index tensors broadcast together. The dims of their common shape take the place of the dims they
index where those are adjacent, and go to the front where they are not. A mask stands for as many
index tensors as it has dims: the places where it is true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import alike, choose, expand_to, is_number, sizes_of
from sardonyx.lower.values import Dim, Tensor, product_of

Indices = Sequence[Tensor | None]

COMBINED_AS = {torch.bool: torch.int32}
"""ONNX has no arithmetic of bools."""


def is_mask(index: Tensor) -> bool:
    return index.dtype in (torch.bool, torch.uint8)


def take(b: Builder, x: Tensor, indices: Indices) -> Tensor:
    """x[indices]"""
    mask = _only_mask(indices)
    if mask is not None and x.dtype != torch.bfloat16:  # ONNX Compress does not take it
        return compress(b, x, *mask)
    by_axis = index_tensors(b, indices)
    if not by_axis:
        return x
    axes = list(by_axis)
    first = axes[0]
    lines = _lines_of_grid(b, list(by_axis.values())) if _adjacent(axes) else None
    if len(axes) == 1:
        result = b.Gather(x, by_axis[first], axis=first)
    elif lines is not None:
        result = x
        for axis, line in zip(axes, lines, strict=True):
            result = b.Gather(result, line, axis=axis)
    elif not _adjacent(axes) or first == 0:
        in_front = b.transpose(x, _indexed_first(axes, x.rank))
        result = b.GatherND(in_front, stacked(b, list(by_axis.values())))
    else:
        result = _take_merged(b, x, by_axis)
    return result


def compress(b: Builder, x: Tensor, mask: Tensor, axis: int) -> Tensor:
    """The elements of `x` where `mask`, which lies along the dims from `axis`, is true."""
    if mask.rank == 0:
        raise b.refuse("a 0-d mask is no index of a dim")
    condition = b.cast(mask, torch.bool)
    if mask.rank > 1:
        dims = b.dims(x)
        merged = product_of(dims[axis : axis + mask.rank])
        x = b.reshape(x, [*dims[:axis], merged, *dims[axis + mask.rank :]])
        condition = b.reshape(condition, [merged])
    return b.Compress(x, condition, axis=axis)


def put(b: Builder, x: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Tensor:
    """`x` with x[indices] set to `values`, or with `values` added there."""
    values = b.cast(values, x.dtype)
    if accumulate and x.dtype in COMBINED_AS:
        wide = COMBINED_AS[x.dtype]
        return b.cast(put(b, b.cast(x, wide), indices, b.cast(values, wide), True), x.dtype)
    mask = _only_mask(indices)
    if mask is not None:
        filled = _fill_mask(b, x, *mask, values, accumulate)
        if filled is not None:
            return filled
    by_axis = index_tensors(b, indices)
    if not by_axis:
        dims = b.dims(x)
        return b.Add(x, b.expand(values, dims)) if accumulate else b.expand(values, dims)
    axes, tensors = list(by_axis), list(by_axis.values())
    reduction = "add" if accumulate else None
    if len(axes) == 1 and tensors[0].rank == 1:
        dims_of_updates: list[Dim | Tensor] = [*b.dims(x)]
        dims_of_updates[axes[0]] = sizes_of(b, tensors[0])[0]
        updates = expand_to(b, values, dims_of_updates)
        return scatter_along(b, x, axes[0], tensors[0], updates, reduction)
    places = stacked(b, tensors) if mask is None else _marked(b, mask[0])
    updates = _updates_in_front(b, x, axes, sizes_of(b, places)[:-1], values)
    perm = _indexed_first(axes, x.rank)
    written = b.ScatterND(b.transpose(x, perm), places, updates, reduction=reduction)
    return b.transpose(written, [perm.index(axis) for axis in range(x.rank)])


def scatter_along(
    b: Builder, x: Tensor, axis: int, index: Tensor, updates: Tensor, reduction: str | None = None
) -> Tensor:
    """`x` with its slices at the 1-D `index` along `axis` replaced by, or combined with, those
    of `updates`."""
    if axis == 0:
        return b.ScatterND(x, b.unsqueeze(index, [1]), updates, reduction=reduction)
    column = b.unsqueeze(index, [a for a in range(x.rank) if a != axis])
    places = expand_to(b, column, sizes_of(b, updates))
    return b.ScatterElements(x, places, updates, axis=axis, reduction=reduction)


def index_tensors(b: Builder, indices: Indices) -> dict[int, Tensor]:
    """The int64 index tensors by the dim they index, masks turned into the places they mark."""
    found: dict[int, Tensor] = {}
    axis = 0
    for index in indices:
        if index is None:
            axis += 1
        elif is_mask(index):
            if index.rank == 0:
                raise b.refuse("a 0-d mask is no index of a dim")
            places = b.NonZero(b.cast(index, torch.bool))
            for row in range(index.rank):
                found[axis + row] = b.Gather(places, row, axis=0)
            axis += index.rank
        else:
            found[axis] = b.cast(index, torch.int64)
            axis += 1
    return found


def _marked(b: Builder, mask: Tensor) -> Tensor:
    """The places where `mask` is true, a row of coordinates for each."""
    return b.transpose(b.NonZero(b.cast(mask, torch.bool)), [1, 0])


def stacked(b: Builder, tensors: Sequence[Tensor]) -> Tensor:
    """Index tensors broadcast together and laid side by side along a new last dim."""
    columns = [b.unsqueeze(t, [t.rank]) for t in alike(b, *tensors)]
    return columns[0] if len(columns) == 1 else b.Concat(*columns, axis=-1)


def _only_mask(indices: Indices) -> tuple[Tensor, int] | None:
    """The mask and the dim it starts at, where it is the only index."""
    given = [(index, axis) for axis, index in enumerate(indices) if index is not None]
    return given[0] if len(given) == 1 and is_mask(given[0][0]) else None


def _fill_mask(
    b: Builder, x: Tensor, mask: Tensor, axis: int, values: Tensor, accumulate: bool
) -> Tensor | None:
    """A Where, if `values` does not differ from one marked place to the next."""
    behind = x.rank - axis - mask.rank
    if values.rank > behind:
        places = values.rank - behind - 1
        if not is_number(values.dim(places), 1):
            return None
        values = b.unsqueeze(values, list(range(places, places + mask.rank - 1)))
    condition = b.cast(b.unsqueeze(mask, list(range(mask.rank, mask.rank + behind))), torch.bool)
    return choose(b, condition, b.Add(x, values) if accumulate else values, x)


def _lines_of_grid(b: Builder, tensors: Sequence[Tensor]) -> list[Tensor] | None:
    """The 1-D indices of x[i[:, None], j]: each tensor varies along its own dim only."""
    count = len(tensors)
    lines = []
    for place, tensor in enumerate(tensors):
        own = place - (count - tensor.rank)
        others = [axis for axis in range(tensor.rank) if axis != own]
        if tensor.rank > count or own < 0:
            return None
        if not all(is_number(tensor.static_dim(axis), 1) for axis in others):
            return None
        lines.append((tensor, others))
    return [b.squeeze(tensor, others) for tensor, others in lines]


def _take_merged(b: Builder, x: Tensor, by_axis: Mapping[int, Tensor]) -> Tensor:
    """Adjacent dims behind others: one Gather along the dim they make when merged."""
    axes = list(by_axis)
    dims = b.dims(x)
    place: Tensor | None = None
    for axis, index in by_axis.items():
        own = _counted_from_front(b, index, dims[axis])
        place = own if place is None else b.Add(b.Mul(place, b.scalar(dims[axis])), own)
    merged = product_of([dims[a] for a in axes])
    line = b.reshape(x, [*dims[: axes[0]], merged, *dims[axes[-1] + 1 :]])
    return b.Gather(line, place, axis=axes[0])


def _counted_from_front(b: Builder, index: Tensor, size: Dim) -> Tensor:
    producer = index.value.producer()
    if producer is not None and producer.op_type == "Range":
        return index
    if index.const is not None:
        if bool((index.const >= 0).all()):
            return index
        if isinstance(size, int):
            return b.const(torch.where(index.const < 0, index.const + size, index.const))
    return b.Where(b.Less(index, 0), b.Add(index, b.scalar(size)), index)


def _updates_in_front(
    b: Builder, x: Tensor, axes: Sequence[int], places: Sequence[Dim | Tensor], values: Tensor
) -> Tensor:
    """`values` broadcast to the shape of x[indices], the dims of the places moved to the front."""
    dims = b.dims(x)
    before = axes[0] if _adjacent(axes) else 0
    rest = [dims[a] for a in range(x.rank) if a not in axes]
    laid_out = expand_to(b, values, [*rest[:before], *places, *rest[before:]])
    rank = len(rest) + len(places)
    first = list(range(before, before + len(places)))
    return b.transpose(laid_out, [*first, *(a for a in range(rank) if a not in first)])


def _adjacent(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(axes[0], axes[0] + len(axes)))


def _indexed_first(axes: Sequence[int], rank: int) -> list[int]:
    return [*axes, *(a for a in range(rank) if a not in axes)]
