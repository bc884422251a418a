"""Running sums, products and extremes along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import onnx_ir as ir
import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.kernels.loops import body_input
from sardonyx.lower.kernels.reductions import accumulation_dtype
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor

Step = Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
"""(what was carried so far, the next items) -> what is carried on."""


@lowering("aten::cumsum", op="CumSum")
@lowering("aten::cumprod", op="CumProd")
def cumulate(
    b: Builder, self: Tensor, dim: int, *, dtype: torch.dtype | None = None, op: str
) -> Tensor:
    x = b.cast(self, dtype or type_promotion.sum_dtype(self.dtype))
    if x.rank == 0 or 0 in b.dims(x):
        return x
    wide = b.cast(x, accumulation_dtype(x.dtype))
    axis = b.scalar(dim % x.rank, torch.int64)
    return b.cast(b.op(op, wide, axis), x.dtype)


@lowering("aten::cummax", beats="Greater")
@lowering("aten::cummin", beats="Less")
def running_extreme(b: Builder, self: Tensor, dim: int, beats: str) -> tuple[Tensor, Tensor]:
    """Of equal extremes the last counts; NaN beats every number."""
    x = self
    if x.rank == 0:
        return x, b.scalar(0, torch.int64)
    if 0 in b.dims(x):
        return x, b.full(b.dims(x), 0, torch.int64)
    narrow = x.dtype in (torch.bool, torch.float16, torch.bfloat16)
    wide = b.cast(x, torch.float32) if narrow else x
    axis = dim % x.rank
    column = [-1 if a == axis else 1 for a in range(x.rank)]
    indices = b.expand(b.reshape(arange(b, x.dim(axis)), column), b.dims(x))

    def step(carried: Sequence[Tensor], items: Sequence[Tensor]) -> list[Tensor]:
        keeps = b.op(beats, carried[0], items[0])
        if wide.is_floating_point:
            only_carried_is_nan = b.And(b.IsNaN(carried[0]), b.Not(b.IsNaN(items[0])))
            keeps = b.Or(keeps, only_carried_is_nan)
        return [b.Where(keeps, old, new) for old, new in zip(carried, items, strict=True)]

    values, places = _scan(b, [wide, indices], axis, step)
    return b.cast(values, x.dtype), places


@lowering("aten::logcumsumexp", "aten::_logcumsumexp")
def logcumsumexp(b: Builder, self: Tensor, dim: int) -> Tensor:
    if self.rank == 0 or 0 in b.dims(self):
        return self
    wide = b.cast(self, accumulation_dtype(self.dtype))

    def step(carried: Sequence[Tensor], items: Sequence[Tensor]) -> list[Tensor]:
        larger = b.Max(carried[0], items[0])
        smaller = b.Min(carried[0], items[0])
        # Two equal infinities differ by NaN, but their sum is themselves.
        gap = b.Where(b.Equal(smaller, larger), b.scalar(0, wide.dtype), b.Sub(smaller, larger))
        added = b.Add(larger, b.Log(b.Add(b.Exp(gap), 1)))
        return [b.Where(b.IsInf(larger), larger, added)]

    axis = dim % self.rank
    others = [size for a, size in enumerate(b.dims(wide)) if a != axis]
    nothing = b.full(others, -math.inf, wide.dtype)
    (sums,) = _scan(b, [wide], axis, step, start=[nothing])
    return b.cast(sums, self.dtype)


def _scan(
    b: Builder,
    items: Sequence[Tensor],
    axis: int,
    step: Step,
    start: Sequence[Tensor] | None = None,
) -> list[Tensor]:
    """What `step` carries after each item along `axis`, from `start` or else the first items on."""
    # Runtimes do not scan what is empty: one more along every dynamic axis, taken away again.
    dims = b.dims(items[0])
    dynamic = [a for a, size in enumerate(dims) if not isinstance(size, int)]
    for a in dynamic:
        items = [_one_more(b, x, a) for x in items]
        if start is not None and a != axis:
            start = [_one_more(b, x, a - (a > axis)) for x in start]
    if start is None:
        start = [b.squeeze(b.slice(x, axis, 0, 1), [axis]) for x in items]
    with b.body() as nodes:
        carried, current = (
            [body_input(b, f"{name}_{k}", x.dtype, x.shape) for k, x in enumerate(start)]
            for name in ("carried", "item")
        )
        after = step(carried, current)
        outputs = [*after, *(b.Identity(x) for x in after)]
        body = ir.Graph(
            [x.value for x in (*carried, *current)],
            [x.value for x in outputs],
            nodes=nodes,
            name="step",
        )
    count = len(items)
    results = b.Scan(
        *start,
        *items,
        outputs=2 * count,
        body=body,
        num_scan_inputs=count,
        scan_input_axes=[axis] * count,
        scan_output_axes=[axis] * count,
    )
    scanned = [
        b.declare(Tensor(result.value, item.dtype, item.shape))
        for item, result in zip(items, results[count:], strict=True)
    ]
    for first, final in zip(start, results[:count], strict=True):
        b.declare(Tensor(final.value, first.dtype, first.shape))
    for a in dynamic:
        scanned = [b.slice(x, a, 0, -1) for x in scanned]
    return [b.with_shape(x, dims) for x in scanned]


def _one_more(b: Builder, x: Tensor, axis: int) -> Tensor:
    one = [1 if a == axis else size for a, size in enumerate(b.dims(x))]
    extended = b.Concat(x, b.full(one, 0, x.dtype), axis=axis)
    return b.with_shape(extended, [d + 1 if a == axis else d for a, d in enumerate(b.dims(x))])
