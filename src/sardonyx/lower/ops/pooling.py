"""Pooling: sliding, adaptive and undone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import sympy
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.kernels.windows import (
    PoolingAxis,
    adaptive_positions,
    batched,
    largest_of_windows,
    missed,
    per_axis,
    places_in_windows,
    pooled_size,
    sums_of_windows,
    unbatched_like,
)
from sardonyx.lower.registry import first_result, lowering
from sardonyx.lower.values import Dim, Dims, Ints, Tensor, product_of

_MAX_POOL_DTYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8,
)  # fmt: skip


_NONE: Ints = []
_ZERO, _ONE = [0], [1]
"""For each of the axes."""


def max_pool(
    b: Builder,
    self: Tensor,
    kernel_size: Ints,
    stride: Ints = _NONE,
    padding: Ints = _ZERO,
    dilation: Ints = _ONE,
    ceil_mode: bool = False,
    *,
    spatial: int,
    outputs: int,
) -> tuple[Tensor, ...]:
    """Largest elements and, as a second output, where in the flattened spatial axes they lie."""
    x = self
    kernel = per_axis(kernel_size, spatial)
    strides = per_axis(stride, spatial) or kernel
    pads, dilations = per_axis(padding, spatial), per_axis(dilation, spatial)
    axes = _pooling_axes(b, x, kernel, strides, pads, dilations, ceil_mode)
    if x.dtype not in _MAX_POOL_DTYPES:
        results = _largest(b, x, [axis.positions_inside(b) for axis in axes])
    else:
        results = b.MaxPool(
            batched(b, x, spatial),
            outputs=outputs,
            kernel_shape=kernel,
            strides=strides,
            pads=pads * 2,
            dilations=dilations,
            ceil_mode=int(ceil_mode),
        )
        if outputs == 2:  # ONNX counts through batch and channels as well
            results = (results[0], b.Mod(results[1], b.size(product_of(b.dims(x)[-spatial:]))))
        results = tuple(unbatched_like(b, result, x, spatial) for result in results)
    if not any(axis.may_miss for axis in axes):
        return results
    lost, place = missed(b, axes)
    least = -math.inf if x.is_floating_point else torch.iinfo(x.dtype).min
    values = b.Where(lost, b.scalar(least, x.dtype), results[0])
    return values, *(b.Where(lost, place, indices) for indices in results[1:])


def _largest(b: Builder, x: Tensor, positions: Sequence[Tensor]) -> tuple[Tensor, ...]:
    wide = b.cast(x, torch.int32) if x.dtype == torch.int16 else x  # ONNX compares no int16
    values, indices = largest_of_windows(b, wide, positions)
    return b.cast(values, x.dtype), indices


def _pooling_axes(
    b: Builder,
    x: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    ceil_mode: bool,
) -> list[PoolingAxis]:
    sizes = b.dims(x)[-len(kernel) :]
    return [
        PoolingAxis(*window, ceil_mode)
        for window in zip(sizes, kernel, strides, pads, dilations, strict=True)
    ]


def avg_pool(
    b: Builder,
    self: Tensor,
    kernel_size: Ints,
    stride: Ints = _NONE,
    padding: Ints = _ZERO,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    spatial: int,
) -> Tensor:
    kernel = per_axis(kernel_size, spatial)
    strides = per_axis(stride, spatial) or kernel
    starts = per_axis(padding, spatial)
    pads: list[Dim] = [*starts, *starts]
    if not self.is_floating_point:  # ONNX averages floating-point tensors only
        axes = _pooling_axes(b, self, kernel, strides, starts, _ONE * spatial, ceil_mode)
        total = sums_of_windows(b, self, axes)
        divisor: int | Tensor | None = divisor_override
        if divisor is None:
            divisor = b.cast(places_in_windows(b, axes, count_include_pad), self.dtype)
        return b.Div(total, divisor)
    if divisor_override is not None:
        # The sum of a window is the mean of all its places times their number, so none of
        # them may lie past the padding, as they can with ceil_mode.
        if ceil_mode:
            pads = _pads_to_last_window(b, self, kernel, strides, starts)
        ceil_mode, count_include_pad = False, True
    x = batched(b, self, spatial)
    if pads[:spatial] != pads[spatial:]:
        x = b.Pad(x, b.shape([0, 0, *pads[:spatial], 0, 0, *pads[spatial:]]))
        pads = [0] * 2 * spatial
    result = b.AveragePool(
        x,
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        ceil_mode=int(ceil_mode),
        count_include_pad=int(count_include_pad),
    )
    if divisor_override is not None:
        result = b.Mul(result, math.prod(kernel) / divisor_override)
    return unbatched_like(b, result, self, spatial)


def _pads_to_last_window(
    b: Builder, x: Tensor, kernel: Sequence[int], strides: Sequence[int], padding: Sequence[int]
) -> list[Dim]:
    """Starts, then ends, with which whole windows alone give what ceil_mode gives."""
    ends: list[Dim] = []
    sizes = b.dims(x)[-len(kernel) :]
    for size, k, s, p in zip(sizes, kernel, strides, padding, strict=True):
        missing = (pooled_size(size, k, s, p, 1, True) - 1) * s + k - size - p
        ends.append(max(missing, 0) if isinstance(missing, int) else sympy.Max(missing, 0))
    return [*padding, *ends]


def _divides_evenly(x: Tensor, output_size: Sequence[Dim]) -> list[int] | None:
    """The kernel that makes adaptive pooling ordinary pooling; None where no one kernel does."""
    kernel = []
    for axis, count in enumerate(output_size):
        size = x.static_dim(axis - len(output_size))
        if size is None or not isinstance(count, int) or count == 0 or size % count:
            return None
        kernel.append(size // count)
    return kernel


def adaptive_avg_pool(b: Builder, self: Tensor, output_size: Dims, spatial: int) -> Tensor:
    x = self
    if not x.is_floating_point:
        raise b.refuse(f"ONNX averages floating-point tensors only, not {x.dtype}")
    output_size = output_size * spatial if len(output_size) == 1 else output_size
    has_batch = x.rank == spatial + 2
    if has_batch and x.dtype != torch.float64 and all(count == 1 for count in output_size):
        return b.GlobalAveragePool(x)
    kernel = _divides_evenly(x, output_size)
    pools = kernel is not None and any(size != 1 for size in kernel)
    if pools and any(count != 1 for count in output_size):
        pooled = b.AveragePool(batched(b, x, spatial), kernel_shape=kernel, strides=kernel)
        return unbatched_like(b, pooled, x, spatial)
    result = x
    for axis in range(-spatial, 0):
        result = _average_adaptively(b, result, x.rank + axis, output_size[axis])
    return result


def _average_adaptively(b: Builder, x: Tensor, axis: int, count: Dim) -> Tensor:
    size = x.dim(axis)
    if size == count:
        return x
    if count == 1:
        return b.ReduceMean(x, [axis], keepdims=1)
    positions, mask = adaptive_positions(b, size, count)
    windows = b.Gather(x, positions, axis=axis)
    if mask is None:
        mean = b.ReduceMean(windows, [axis + 1], keepdims=0)
    else:
        trailing = list(range(2, x.rank - axis + 1))
        inside = b.Where(b.unsqueeze(mask, trailing), windows, b.scalar(0, x.dtype))
        lengths = b.ReduceSum(b.cast(mask, torch.int64), [1], keepdims=0)
        shaped = b.unsqueeze(b.cast(lengths, x.dtype), [t - 1 for t in trailing])
        mean = b.Div(b.ReduceSum(inside, [axis + 1], keepdims=0), shaped)
    dims = [count if a == axis else d for a, d in enumerate(b.dims(x))]
    return b.with_shape(mean, dims)


def adaptive_max_pool(
    b: Builder, self: Tensor, output_size: Dims, spatial: int
) -> tuple[Tensor, ...]:
    sizes = output_size * spatial if len(output_size) == 1 else output_size
    kernel = _divides_evenly(self, sizes)
    if kernel is not None and self.dtype in _MAX_POOL_DTYPES:
        return max_pool(b, self, kernel, spatial=spatial, outputs=2)
    positions = [
        # Windows of one element each, where all of them stay.
        b.unsqueeze(arange(b, size), [1])
        if size == count
        else adaptive_positions(b, size, count)[0]
        for size, count in zip(b.dims(self)[-spatial:], sizes, strict=True)
    ]
    return _largest(b, self, positions)


for _n in (1, 2, 3):
    lowering(f"aten::max_pool{_n}d", spatial=_n, outputs=1)(first_result(max_pool))
    lowering(f"aten::max_pool{_n}d_with_indices", spatial=_n, outputs=2)(max_pool)
    lowering(f"aten::avg_pool{_n}d", spatial=_n)(avg_pool)
    lowering(f"aten::adaptive_max_pool{_n}d", spatial=_n)(adaptive_max_pool)
    lowering(f"aten::adaptive_avg_pool{_n}d", spatial=_n)(adaptive_avg_pool)
for _n in (2, 3):
    lowering(f"aten::mkldnn_max_pool{_n}d", spatial=_n, outputs=1)(first_result(max_pool))
    lowering(f"aten::_adaptive_avg_pool{_n}d", spatial=_n)(adaptive_avg_pool)


@lowering("aten::max_unpool2d", "aten::max_unpool3d")
def max_unpool(
    b: Builder,
    self: Tensor,
    indices: Tensor,
    output_size: Dims,
    stride: Ints | None = None,
    padding: Ints | None = None,
) -> Tensor:
    # The sizes and the indices say all.
    spatial = len(output_size)
    outer = b.dims(self)[: self.rank - spatial]
    canvas = b.full([*outer, product_of(output_size)], 0, self.dtype)
    flat_shape = [0] * len(outer) + [-1]
    placed = b.ScatterElements(
        canvas, b.Reshape(indices, flat_shape), b.Reshape(self, flat_shape), axis=-1
    )
    return b.reshape(placed, [*outer, *output_size])
