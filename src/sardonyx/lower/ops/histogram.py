"""Histograms: how many elements, or what weight of them, fall between edges."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.reductions import accumulation_dtype
from sardonyx.lower.ops.sorting import places_among
from sardonyx.lower.registry import first_result, lowering
from sardonyx.lower.values import Dim, Tensor, product_of


@lowering("aten::histc")
def histc(b: Builder, self: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    if not self.dtype.is_floating_point:
        raise b.refuse("histc of integers exists on GPUs alone")
    flat = b.reshape(self, [b.numel(self)])
    if min == max:
        first, last = _ends_of_data(b, flat, apart=1.0)
    else:
        first, last = b.scalar(min, self.dtype), b.scalar(max, self.dtype)
    # By division alone, unlike the other histograms, which look at the edges as well.
    scaled = b.Div(b.Mul(b.Sub(flat, first), bins), b.Sub(last, first))
    inside = _between(b, flat, first, last)
    place = b.cast(b.Where(inside, scaled, b.scalar(0, scaled.dtype)), torch.int64)
    place = b.Min(place, bins - 1)
    return _weight_of_bins(b, place, inside, None, bins, self.dtype)


@lowering("aten::bincount")
def bincount(b: Builder, self: Tensor, weights: Tensor | None = None, minlength: Dim = 0) -> Tensor:
    places = b.cast(self, torch.int64)
    longest = b.Concat(places, b.size(minlength - 1), axis=0)
    length = b.Add(b.ReduceMax(longest, [0], keepdims=1), 1)
    if weights is None:
        dtype = torch.int64
        weight = b.Expand(b.scalar(1, dtype), b.Shape(places))
    else:
        dtype = torch.float32 if weights.dtype == torch.float32 else torch.float64
        weight = b.cast(weights, dtype)
    nothing = b.Expand(b.scalar(0, dtype), length)
    return b.ScatterElements(nothing, places, weight, axis=0, reduction="add")


# -- histogram and histogramdd ---------------------------------------------------------------------


@lowering("aten::histogram.bins_tensor", "aten::histogram.bin_ct")
def histogram(
    b: Builder,
    self: Tensor,
    bins: Tensor | int = 100,
    *,
    range: list[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    points = b.reshape(self, [b.numel(self), 1])
    edges = [bins] if isinstance(bins, Tensor) else _even_edges(b, points, [bins], range)
    return _histogram(b, points, edges, weight, density), edges[0]


@lowering("aten::histogramdd", "aten::histogramdd.int_bins", "aten::histogramdd.TensorList_bins")
def histogramdd(
    b: Builder,
    self: Tensor,
    bins: int | list[int] | list[Tensor],
    range: list[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    points = _points(b, self)
    counts = [bins] * int(points.dim(1)) if isinstance(bins, int) else bins
    # PyTorch looks at edges alone, whatever range is given beside them.
    edges = [edge for edge in counts if isinstance(edge, Tensor)]
    edges = edges or _even_edges(b, points, [n for n in counts if isinstance(n, int)], range)
    return _histogram(b, points, edges, weight, density), edges


@lowering("aten::_histogramdd_bin_edges")
def histogramdd_bin_edges(
    b: Builder,
    self: Tensor,
    bins: list[int],
    *,
    range: list[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> list[Tensor]:
    return _even_edges(b, _points(b, self), bins, range)


lowering("aten::_histogramdd_from_bin_cts", "aten::_histogramdd_from_bin_tensors")(
    first_result(histogramdd)
)


def _points(b: Builder, x: Tensor) -> Tensor:
    """Points as rows: the last dim holds the coordinates of each."""
    return b.reshape(x, [product_of(b.dims(x)[:-1]), x.dim(-1)])


def _even_edges(
    b: Builder, points: Tensor, bins: Sequence[int], given: Sequence[float] | None
) -> list[Tensor]:
    """For each coordinate the edges of so many bins, from end to end of the data or as given."""
    edges = []
    for axis, count in enumerate(bins):
        if given is not None and given[2 * axis] != given[2 * axis + 1]:
            ends = given[2 * axis], given[2 * axis + 1]
            edges.append(b.const(torch.linspace(*ends, count + 1, dtype=points.dtype)))
            continue
        if given is None:
            values = b.Gather(points, axis, axis=1)
            first, last = _ends_of_data(b, values, apart=0.5)
        else:
            first, last = (
                b.scalar(given[2 * axis] + offset, points.dtype) for offset in (-0.5, 0.5)
            )
        edges.append(_linspace(b, first, last, count))
    return edges


def _ends_of_data(b: Builder, values: Tensor, apart: float) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element, moved apart where all are equal."""
    smallest, largest = (b.op(op, values, [0], keepdims=1) for op in ("ReduceMin", "ReduceMax"))
    widening = b.Mul(b.cast(b.Equal(smallest, largest), values.dtype), apart)
    return b.Sub(smallest, widening), b.Add(largest, widening)


def _linspace(b: Builder, first: Tensor, last: Tensor, bins: int) -> Tensor:
    """As torch.linspace: from the start in the first half, from the end in the second."""
    step = b.Div(b.Sub(last, first), b.scalar(bins, first.dtype))
    places = torch.arange(bins + 1, dtype=first.dtype)
    from_start = b.Add(first, b.Mul(step, b.const(places)))
    from_end = b.Sub(last, b.Mul(step, b.const(bins - places)))
    first_half = torch.arange(bins + 1) < (bins + 1) // 2
    return b.Where(b.const(first_half), from_start, from_end)


def _histogram(
    b: Builder,
    points: Tensor,
    edges: Sequence[Tensor],
    weight: Tensor | None,
    density: bool,
) -> Tensor:
    counts = [edge.static_dim(0) for edge in edges]
    if None in counts:
        raise b.refuse("the number of bins is not known at export time")
    bins = [count - 1 for count in counts if count is not None]
    inside: Tensor | None = None
    place: Tensor | None = None
    for axis, (edge, count) in enumerate(zip(edges, bins, strict=True)):
        values = b.Gather(points, axis, axis=1)
        first, last = b.slice(edge, 0, 0, 1), b.slice(edge, 0, count, count + 1)
        within = _between(b, values, first, last)
        inside = within if inside is None else b.And(inside, within)
        # A bin holds its left edge, the last one its right edge too.
        own = b.Sub(places_among(b, edge, values, right=True), 1)
        own = b.Max(b.Min(own, count - 1), 0)
        place = own if place is None else b.Add(b.Mul(place, count), own)
    assert inside is not None and place is not None
    total = int(product_of(bins))
    flat = _weight_of_bins(b, place, inside, weight, total, points.dtype)
    result = b.reshape(flat, bins)
    return _density(b, result, edges) if density else result


def _between(b: Builder, values: Tensor, first: Tensor, last: Tensor) -> Tensor:
    return b.And(b.GreaterOrEqual(values, first), b.LessOrEqual(values, last))


def _weight_of_bins(
    b: Builder,
    place: Tensor,
    inside: Tensor,
    weight: Tensor | None,
    bins: int,
    dtype: torch.dtype,
) -> Tensor:
    wide = accumulation_dtype(dtype)
    if weight is None:
        share = b.cast(inside, wide)
    else:
        flat = b.cast(b.reshape(weight, [b.numel(weight)]), wide)
        share = b.Where(inside, flat, b.scalar(0, wide))
    nothing = b.full([bins], 0, wide)
    total = b.ScatterElements(nothing, place, share, axis=0, reduction="add")
    return b.cast(total, dtype)


def _density(b: Builder, counts: Tensor, edges: Sequence[Tensor]) -> Tensor:
    """Such that the integral over all bins is one."""
    result = b.Div(counts, b.ReduceSum(counts, keepdims=0))
    for axis, edge in enumerate(edges):
        width = b.Sub(b.slice(edge, 0, 1, None), b.slice(edge, 0, 0, -1))
        shape = [-1 if a == axis else 1 for a in range(len(edges))]
        result = b.Div(result, b.reshape(width, shape))
    return result
