"""Windows that slide over spatial axes, as convolution, pooling and unfolding share them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sardonyx.lower.builder import Builder
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
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> int:
    """How many windows ATen places: none may start in the padding at the far end."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def index_range(b: Builder, end: Dim | Tensor) -> Tensor:
    """0, 1, ... end - 1 as int64."""
    if isinstance(end, int):
        return b.const(torch.arange(end))
    result: Tensor = b.Range(0, b.squeeze(b.size(end), [0]), 1)
    return result


def sliding_positions(b: Builder, size: Dim, kernel: int, stride: int, dilation: int) -> Tensor:
    """[windows, kernel]: what each window reads along an axis of `size` (padding included)."""
    reach = dilation * (kernel - 1)
    offsets = torch.arange(kernel) * dilation
    if isinstance(size, int):
        starts = torch.arange((size - reach - 1) // stride + 1) * stride
        return b.const(starts[:, None] + offsets)
    count = b.Add(b.Div(b.size(size - reach - 1), stride), 1)
    made: Tensor = b.Mul(b.unsqueeze(index_range(b, count), [1]), stride)
    result: Tensor = b.Add(made, b.const(offsets))
    return result


def sliding_positions_inside(
    b: Builder,
    size: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    ceil_mode: bool,
) -> Tensor:
    """As sliding_positions, of the axis without its padding: a position that falls outside is
    replaced by one of the same window that does not, which leaves the maximum as it is."""
    count = pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    starts = (torch.arange(count) * stride - padding)[:, None]
    first = (
        starts
        + torch.div(-starts.clamp(max=0) + dilation - 1, dilation, rounding_mode="floor") * dilation
    )
    positions = starts + torch.arange(kernel) * dilation
    return b.const(torch.where((positions < 0) | (positions >= size), first, positions))


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
    indices = b.unsqueeze(index_range(b, count), [1])
    starts = b.Div(b.Mul(indices, total), parts)
    ends = _ceil_divide(b, b.Mul(b.Add(indices, 1), total), parts)
    length = b.Add(_ceil_divide(b, total, parts), 1)
    offsets = b.Add(starts, index_range(b, length))
    return b.Min(offsets, b.Sub(ends, 1)), b.Less(offsets, ends)


def _ceil_divide(b: Builder, left: Tensor, right: Tensor) -> Tensor:
    result: Tensor = b.Div(b.Sub(b.Add(left, right), 1), right)
    return result


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
    values: Tensor = b.ReduceMax(windows, kernels, keepdims=0)
    # Kernel axes last and flat, so that the first of equal elements wins in ATen's order.
    kernels_last = b.transpose(windows, [*range(first), *counts, *kernels])
    flat = b.Reshape(kernels_last, [0] * (first + spatial) + [-1])
    chosen = b.ArgMax(flat, axis=-1, keepdims=1)
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
    result: Tensor = b.Reshape(flat, [0] * spatial + [-1])
    return result
