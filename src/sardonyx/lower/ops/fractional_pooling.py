"""Fractional max pooling: random window positions for each channel."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.windows import batched, unbatched_like
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Ints, Tensor, product_of


@lowering("aten::fractional_max_pool2d", "aten::fractional_max_pool3d")
def fractional_max_pool(
    b: Builder, self: Tensor, kernel_size: Ints, output_size: Ints, random_samples: Tensor
) -> tuple[Tensor, Tensor]:
    """The largest elements and where in the flattened spatial axes they lie."""
    kernel, counts, samples = kernel_size, output_size, random_samples
    spatial = len(kernel)
    # ATen reads the samples of two dims from the last axis on.
    sample_of_axis = [1, 0] if spatial == 2 else [0, 1, 2]
    x = batched(b, self, spatial)
    if x is not self and samples.dim(0) != 1:
        samples = b.with_shape(b.slice(samples, 0, 0, 1), [1, *b.dims(samples)[1:]])
    batch, channels, *sizes = b.dims(x)
    # (batch, channels, *counts, *kernel): flat positions
    places: Tensor | None = None
    for axis, size in enumerate(sizes):
        sample = b.slice(samples, 2, sample_of_axis[axis], sample_of_axis[axis] + 1)
        starts = _starts(b, b.cast(sample, x.dtype), size, kernel[axis], counts[axis])
        others = [2 + a for a in range(2 * spatial) if a != axis]
        within = b.const(torch.arange(kernel[axis]))
        spread = b.Add(
            b.unsqueeze(starts, others),
            b.unsqueeze(within, list(range(1, spatial - axis))),
        )
        places = spread if places is None else b.Add(b.Mul(places, b.size(size)), spread)
    assert places is not None
    area, windows, each = (product_of(dims) for dims in (sizes, counts, kernel))
    flat = b.reshape(x, [batch, channels, area])
    dims: list[Dim] = [batch, channels, product_of([windows, each])]
    indices = b.reshape(b.with_shape(places, [batch, channels, *counts, *kernel]), dims)
    read = b.GatherElements(flat, indices, axis=2)
    read, table = (b.reshape(t, [batch, channels, windows, each]) for t in (read, indices))
    chosen = b.ArgMax(read, axis=3, keepdims=1)
    results = []
    for source in (read, table):
        picked = b.squeeze(b.GatherElements(source, chosen, axis=3), [3])
        shaped = b.reshape(picked, [batch, channels, *counts])
        results.append(unbatched_like(b, shaped, self, spatial))
    return results[0], results[1]


def _starts(b: Builder, sample: Tensor, size: Dim, kernel: int, count: int) -> Tensor:
    """(batch, channels, count): where the windows begin; the last one ends with the axis."""
    room = b.scalar(size - kernel, torch.int64)
    outer = b.dims(sample)[:2]
    last = b.expand(b.unsqueeze(room, [0]), [*outer, 1])
    if count == 1:
        return last
    step = b.Div(b.cast(room, sample.dtype), b.scalar(count - 1, sample.dtype))
    numbers = b.const(torch.arange(count - 1), sample.dtype)
    moved = b.cast(b.Mul(b.Add(numbers, sample), step), torch.int64)
    first = b.cast(b.Mul(sample, step), torch.int64)
    starts = b.Concat(b.Sub(moved, first), last, axis=2)
    return b.with_shape(starts, [*outer, count])
