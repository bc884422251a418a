"""Writing elements to places that tensors name, replacing or combining with what is there."""

from __future__ import annotations

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.advanced_indexing import COMBINED_AS, scatter_along
from sardonyx.lower.kernels.axes import at_least_1d, axis_of, expand_to, is_number, sizes_of
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor

_REDUCTIONS = {
    "add": "add",
    "sum": "add",
    "multiply": "mul",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
}
"""ATen's names of reductions and ONNX's."""


def scatter_elements(
    b: Builder, x: Tensor, dim: int, index: Tensor, src: Tensor, reduction: str | None = None
) -> Tensor:
    """ScatterElements with ATen's freedoms: 0-d tensors, and a `src` larger than `index`."""
    if any(is_number(d, 0) for d in b.dims(index)):
        return x
    if reduction is not None and x.dtype in COMBINED_AS:
        wide_x, wide_src = (b.cast(t, COMBINED_AS[x.dtype]) for t in (x, src))
        return b.cast(scatter_elements(b, wide_x, dim, index, wide_src, reduction), x.dtype)
    base, places, updates = at_least_1d(b, x), at_least_1d(b, index), at_least_1d(b, src)
    if updates.shape != places.shape:
        rank = places.rank
        updates = b.Slice(updates, [0] * rank, b.shape(b.dims(places)), list(range(rank)))
    written = b.ScatterElements(
        base,
        b.cast(places, torch.int64),
        b.cast(updates, x.dtype),
        axis=axis_of(x, dim),
        reduction=reduction,
    )
    return b.reshape(written, b.dims(x))


def _value_everywhere(b: Builder, x: Tensor, index: Tensor, value: Scalar) -> Tensor:
    return expand_to(b, b.scalar(value, x.dtype), sizes_of(b, index))


@lowering(
    "aten::scatter.src", "aten::scatter.value", "aten::scatter.reduce", "aten::scatter.value_reduce"
)
def scatter(
    b: Builder,
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | None = None,
    value: Scalar = 0,
    *,
    reduce: str | None = None,
) -> Tensor:
    written = _value_everywhere(b, self, index, value) if src is None else src
    return scatter_elements(b, self, dim, index, written, reduce and _REDUCTIONS[reduce])


@lowering("aten::scatter_add")
def scatter_add(b: Builder, self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return scatter_elements(b, self, dim, index, src, "add")


@lowering("aten::scatter_reduce.two")
def scatter_reduce(
    b: Builder,
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    base = x = self
    if not include_self:
        # What is written to starts from the value that changes nothing.
        neutral = _value_everywhere(b, x, index, _neutral(x.dtype, reduce))
        base = scatter_elements(b, x, dim, index, neutral)
    if reduce != "mean":
        return scatter_elements(b, base, dim, index, src, _REDUCTIONS[reduce])
    total = scatter_elements(b, base, dim, index, src, "add")
    ones = _value_everywhere(b, x, index, 1)
    start = b.full_like(x, 1 if include_self else 0)
    count = scatter_elements(b, start, dim, index, ones, "add")
    if not include_self:
        count = b.Max(count, b.scalar(1, x.dtype))
    if x.is_floating_point:
        result = b.Div(total, count)
    else:  # ATen's mean of integers rounds down; ONNX Div rounds toward zero.
        quotient = b.Div(total, count)
        is_exact = b.Equal(b.Mul(quotient, count), total)
        is_above = b.And(b.Less(total, b.scalar(0, x.dtype)), b.Not(is_exact))
        result = b.Sub(quotient, b.cast(is_above, x.dtype))
    return result


def _neutral(dtype: torch.dtype, reduce: str) -> float | int:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.is_floating_point:
        return float("-inf") if reduce == "amax" else float("inf")
    if dtype == torch.bool:
        return reduce == "amin"
    limits = torch.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


# -- whole slices ----------------------------------------------------------------------------------


@lowering("aten::index_add")
def index_add(
    b: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1
) -> Tensor:
    if self.dtype in COMBINED_AS:
        base, updates = (b.cast(t, COMBINED_AS[self.dtype]) for t in (self, source))
        return b.cast(index_add(b, base, dim, index, updates, alpha=alpha), self.dtype)
    updates = b.cast(source, self.dtype)
    if alpha != 1:
        # Of halves, alpha is rounded, and what is added up.
        wide = type_promotion.once_rounded_dtype(self.dtype)
        factor = b.cast(b.scalar(alpha, self.dtype), wide)
        updates = b.Mul(b.cast(updates, wide), factor)
        written = _scatter_slices(b, b.cast(self, wide), dim, index, updates, "add")
        return b.cast(written, self.dtype)
    return _scatter_slices(b, self, dim, index, updates, "add")


def _scatter_slices(
    b: Builder, x: Tensor, dim: int, index: Tensor, source: Tensor, reduction: str | None
) -> Tensor:
    if reduction is not None and x.dtype in COMBINED_AS:
        base, updates = (b.cast(t, COMBINED_AS[x.dtype]) for t in (x, source))
        return b.cast(_scatter_slices(b, base, dim, index, updates, reduction), x.dtype)
    places = b.cast(at_least_1d(b, index), torch.int64)
    axis = axis_of(x, dim)
    updates = _slices_of(b, x, axis, source)
    written = scatter_along(b, at_least_1d(b, x), axis, places, updates, reduction)
    return b.reshape(written, b.dims(x))


def _slices_of(b: Builder, x: Tensor, axis: int, source: Tensor) -> Tensor:
    """A single slice may come without the dim it is written along."""
    return b.unsqueeze(source, [axis]) if source.rank < max(x.rank, 1) else source


@lowering("aten::index_reduce")
def index_reduce(
    b: Builder,
    self: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    axis = axis_of(self, dim)
    updates = _slices_of(b, self, axis, source)
    line = b.unsqueeze(at_least_1d(b, index), [a for a in range(updates.rank) if a != axis])
    places = b.expand(line, b.dims(updates))
    return scatter_reduce(b, self, dim, places, updates, reduce, include_self=include_self)


@lowering("aten::put")
def put(
    b: Builder, self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False
) -> Tensor:
    line = b.reshape(self, [b.numel(self)])
    places = b.cast(b.reshape(index, [b.numel(index)]), torch.int64)
    values = b.reshape(source, [b.numel(source)])
    return b.reshape(
        _scatter_slices(b, line, 0, places, values, "add" if accumulate else None), b.dims(self)
    )
