"""Windows that slide over spatial axes, as convolution, pooling and unfolding share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange, flattened_from
from sardonyx.lower.values import Dim, Tensor


def per_axis(values: Sequence[int], spatial: int) -> list[int]:
    """One number per spatial axis: ATen lets a single number stand for all of them."""
    return list(values) * spatial if len(values) == 1 else list(values)


def batched(b: Builder, x: Tensor, spatial: int) -> Tensor:
    """`x` with a batch axis; ATen takes (C, D1, ...) as well as (N, C, D1, ...)."""
    return x if x.rank == spatial + 2 else b.unsqueeze(x, [0])


def unbatched_like(b: Builder, result: Tensor, x: Tensor, spatial: int) -> Tensor:
    """Takes back what `batched` did to `x`."""
    return result if x.rank == spatial + 2 else b.squeeze(result, [0])


def pooled_size(
    size: Dim, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> Dim:
    """How many windows ATen places: none may start in the padding at the far end."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return floor_divided(room, stride) + 1
    count = floor_divided(room + stride - 1, stride) + 1
    starts = floor_divided(size + padding + stride - 1, stride)
    if isinstance(count, int) and isinstance(starts, int):
        return min(count, starts)
    return sympy.Min(count, starts)


def floor_divided(size: Dim, divisor: int) -> Dim:
    if isinstance(size, int):
        return size // divisor
    quotient: Dim = size if divisor == 1 else _torch_private.floor_quotient(size, divisor)
    return quotient


def sliding_positions(b: Builder, size: Dim, kernel: int, stride: int, dilation: int) -> Tensor:
    """[windows, kernel]: what each window reads along an axis of `size` (padding included)."""
    count = pooled_size(size, kernel, stride, 0, dilation, ceil_mode=False)
    offsets = torch.arange(kernel) * dilation
    if isinstance(count, int):
        return b.const((torch.arange(count) * stride)[:, None] + offsets)
    made = b.Mul(b.unsqueeze(arange(b, count), [1]), stride)
    return b.with_shape(b.Add(made, b.const(offsets)), [count, kernel])


@dataclass(frozen=True, slots=True)
class PoolingAxis:
    """How ATen's pooling windows lie on one axis."""

    size: Dim
    kernel: int
    stride: int
    padding: int
    dilation: int
    ceil_mode: bool

    @property
    def count(self) -> Dim:
        return pooled_size(
            self.size, self.kernel, self.stride, self.padding, self.dilation, self.ceil_mode
        )

    def starts(self, b: Builder) -> Tensor:
        """[windows, 1]: where each begins on the axis without its padding."""
        if isinstance(self.count, int):
            return b.const((torch.arange(self.count) * self.stride - self.padding)[:, None])
        steps = b.Mul(b.unsqueeze(arange(b, self.count), [1]), self.stride)
        return b.Sub(steps, self.padding)

    def positions(self, b: Builder) -> Tensor:
        """[windows, kernel]: what each reads; a position may lie in the padding or beyond it."""
        offsets = b.const(torch.arange(self.kernel) * self.dilation)
        return b.Add(self.starts(b), offsets)

    def is_inside(self, b: Builder, positions: Tensor) -> Tensor:
        return b.And(b.GreaterOrEqual(positions, 0), b.Less(positions, b.size(self.size)))

    @property
    def may_miss(self) -> bool:
        """Whether a window may have no element of the axis: one that starts before it, and steps
        over all of it."""
        if not self.padding or self.dilation == 1:
            return False
        return not isinstance(self.size, int) or self.size < self.dilation

    def first_positions(self, b: Builder) -> Tensor:
        """[windows, 1]: what each reads first, past the padding before the axis."""
        starts = self.starts(b)
        before = b.Add(b.Max(b.Neg(starts), 0), self.dilation - 1)
        return b.Add(starts, b.Mul(b.Div(before, self.dilation), self.dilation))

    def positions_inside(self, b: Builder) -> Tensor:
        """As `positions`, but one that falls outside is replaced by one of the same window that
        does not, which leaves the maximum as it is."""
        positions, first = self.positions(b), self.first_positions(b)
        if self.may_miss:
            first = b.Min(first, b.Sub(b.size(self.size), 1))
        chosen = b.Where(self.is_inside(b, positions), positions, first)
        return b.with_shape(chosen, [self.count, self.kernel])


def missed(b: Builder, axes: Sequence[PoolingAxis]) -> tuple[Tensor, Tensor]:
    """Which windows have no element of `axes`, and the place in the flattened axes that ATen
    says is the largest of those."""
    lost: Tensor | None = None
    place: Tensor | None = None
    for axis, windows in enumerate(axes):
        spread = list(range(1, len(axes) - axis))
        first = b.unsqueeze(b.squeeze(windows.first_positions(b), [1]), spread)
        size = b.size(windows.size)
        place = first if place is None else b.Add(b.Mul(place, size), first)
        if windows.may_miss:
            beyond = b.GreaterOrEqual(first, size)
            lost = beyond if lost is None else b.Or(lost, beyond)
    assert lost is not None and place is not None
    return lost, place


def sums_of_windows(b: Builder, x: Tensor, axes: Sequence[PoolingAxis]) -> Tensor:
    """The exact sum of the integers of `x` in each window; one entry per last axis."""
    first = x.rank - len(axes)
    for axis, windows in enumerate(axes, start=first):
        positions = windows.positions(b)
        inside = windows.is_inside(b, positions)
        read = b.Gather(x, b.Where(inside, positions, b.scalar(0, torch.int64)), axis=axis)
        mask = b.unsqueeze(inside, list(range(2, x.rank - axis + 1)))
        dims = [windows.count if a == axis else d for a, d in enumerate(b.dims(x))]
        counted = b.Where(mask, read, b.scalar(0, x.dtype))
        # A product, as ONNX Runtime's ReduceSum adds integers in float64.
        kernel_last = [*(a for a in range(x.rank + 1) if a != axis + 1), axis + 1]
        ones = b.full([windows.kernel, 1], 1, x.dtype)
        totals = b.squeeze(b.MatMul(b.transpose(counted, kernel_last), ones), [x.rank])
        x = b.with_shape(totals, dims)
    return x


def places_in_windows(b: Builder, axes: Sequence[PoolingAxis], include_padding: bool) -> Tensor:
    """How many places each window has within the axes, or within the axes and their padding."""
    total: Tensor | None = None
    for axis, windows in enumerate(axes):
        positions = windows.positions(b)
        if include_padding:
            counted = b.Less(positions, b.size(windows.size + windows.padding))
        else:
            counted = windows.is_inside(b, positions)
        lengths = b.ReduceSum(b.cast(counted, torch.int64), [1], keepdims=0)
        spread = b.unsqueeze(lengths, list(range(1, len(axes) - axis)))
        total = spread if total is None else b.Mul(total, spread)
    assert total is not None
    return total


def adaptive_positions(b: Builder, size: Dim, count: Dim) -> tuple[Tensor, Tensor | None]:
    """([count, length], mask) of the `count` windows that divide an axis of `size` as evenly as
    ATen's adaptive pooling does. Shorter windows repeat their last position, where the mask is
    False; no mask where all are of one length."""
    if isinstance(size, int) and isinstance(count, int):
        index = torch.arange(count)[:, None]
        start, end = index * size // count, -(-((index + 1) * size) // count)
        reach = torch.arange(int((end - start).max()))
        mask = start + reach < end
        positions = b.const(torch.minimum(start + reach, end - 1))
        return positions, None if bool(mask.all()) else b.const(mask)
    total, parts = b.size(size), b.size(count)
    indices = b.unsqueeze(arange(b, count), [1])
    starts = b.Div(b.Mul(indices, total), parts)
    ends = _ceil_divide(b, b.Mul(b.Add(indices, 1), total), parts)
    length: Dim | Tensor = b.Add(_ceil_divide(b, total, parts), 1)
    if isinstance(count, int):
        length = floor_divided(size + count - 1, count) + 1
    offsets = b.Add(starts, arange(b, length))
    positions = b.Min(offsets, b.Sub(ends, 1))
    dims = [count, None if isinstance(length, Tensor) else length]
    return b.with_shape(positions, dims), b.Less(offsets, ends)


def _ceil_divide(b: Builder, left: Tensor, right: Tensor) -> Tensor:
    return b.Div(b.Sub(b.Add(left, right), 1), right)


def gather_windows(b: Builder, x: Tensor, positions: Sequence[Tensor]) -> Tensor:
    """[..., D1, D2] to [..., windows1, kernel1, windows2, kernel2]; one entry per last axis."""
    first = x.rank - len(positions)
    for axis in reversed(range(len(positions))):
        x = b.Gather(x, positions[axis], axis=first + axis)
    return x


def largest_of_windows(b: Builder, x: Tensor, positions: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The largest element of each window and where it lies in the flattened spatial axes."""
    spatial = len(positions)
    first = x.rank - spatial
    windows = gather_windows(b, x, positions)
    counts = [first + 2 * axis for axis in range(spatial)]
    kernels = [axis + 1 for axis in counts]
    values = b.ReduceMax(windows, kernels, keepdims=0)
    # Kernel axes last and flat, so that the first of equal elements wins in ATen's order.
    kernels_last = b.transpose(windows, [*range(first), *counts, *kernels])
    flat = flattened_from(b, kernels_last, first + spatial)
    chosen = b.ArgMax(flat, axis=flat.rank - 1, keepdims=1)
    table = b.Expand(_flat_positions(b, x, positions), b.Shape(flat))
    indices = b.GatherElements(table, chosen, axis=-1)
    return values, b.squeeze(indices, [-1])


def _flat_positions(b: Builder, x: Tensor, positions: Sequence[Tensor]) -> Tensor:
    """[windows1, windows2, kernel1 * kernel2]: positions in the flattened spatial axes."""
    spatial = len(positions)
    flat: Tensor | None = None
    for axis, entry in enumerate(positions):
        others = [a for a in range(2 * spatial) if a not in (axis, spatial + axis)]
        spread = b.unsqueeze(entry, others)
        size = b.size(x.dim(x.rank - spatial + axis))
        flat = spread if flat is None else b.Add(b.Mul(flat, size), spread)
    assert flat is not None
    return flattened_from(b, flat, spatial)
