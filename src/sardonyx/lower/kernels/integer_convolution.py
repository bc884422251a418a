"""Convolutions of integers, which ONNX has no operator for: exact sums of products that wrap."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.contraction import Labelled, contract
from sardonyx.lower.kernels.windows import gather_windows, sliding_positions
from sardonyx.lower.values import Tensor

_BATCH, _GROUP, _IN, _OUT = range(4)


def convolve_integers(
    b: Builder,
    x: Tensor,
    weight: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    pads: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """`x` (N, C, D1, ...) by `weight` (out, C / groups, k1, ...); all starts, then all ends."""
    padded = _padded(b, x, pads)
    batch, channels, *sizes = b.dims(padded)
    positions = [
        sliding_positions(b, size, *window)
        for size, *window in zip(sizes, kernel, stride, dilation, strict=True)
    ]
    windows = gather_windows(b, padded, positions)
    windows = b.reshape(windows, [batch, groups, channels // groups, *b.dims(windows)[2:]])
    rows = weight.dim(0)
    grouped = b.reshape(weight, [groups, rows // groups, *b.dims(weight)[1:]])
    counts = [10 + 2 * axis for axis in range(len(kernel))]
    within = [label + 1 for label in counts]
    pairs = [label for pair in zip(counts, within, strict=True) for label in pair]
    result = contract(
        b,
        [
            Labelled(windows, (_BATCH, _GROUP, _IN, *pairs)),
            Labelled(grouped, (_GROUP, _OUT, _IN, *within)),
        ],
        [_BATCH, _GROUP, _OUT, *counts],
    )
    return b.reshape(result, [batch, rows, *b.dims(result)[3:]])


def convolve_integers_transposed(
    b: Builder,
    x: Tensor,
    weight: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """The sliding form of it: the elements `stride` apart, the kernel turned around."""
    spatial = len(kernel)
    rows, columns, *sizes = b.dims(weight)
    turned = b.reshape(weight, [groups, rows // groups, columns, *sizes])
    for axis in range(3, 3 + spatial):
        turned = b.with_shape(b.slice(turned, axis, -1, None, step=-1), b.dims(turned))
    turned = b.transpose(turned, [0, 2, 1, *range(3, 3 + spatial)])
    turned = b.reshape(turned, [groups * columns, rows // groups, *sizes])
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    starts = [r - p for r, p in zip(reach, padding, strict=True)]
    pads = [*starts, *(s + e for s, e in zip(starts, output_padding, strict=True))]
    spread = _spread(b, x, stride)
    return convolve_integers(b, spread, turned, kernel, [1] * spatial, pads, dilation, groups)


def _padded(b: Builder, x: Tensor, pads: Sequence[int]) -> Tensor:
    if not any(pads):
        return x
    spatial = len(pads) // 2
    starts, ends = pads[:spatial], pads[spatial:]
    made = b.Pad(x, [0, 0, *starts, 0, 0, *ends])
    grown = [s + e for s, e in zip(starts, ends, strict=True)]
    sizes = [d + g for d, g in zip(b.dims(x)[2:], grown, strict=True)]
    return b.with_shape(made, [*b.dims(x)[:2], *sizes])


def _spread(b: Builder, x: Tensor, stride: Sequence[int]) -> Tensor:
    """`x` with its elements `stride` apart and zeros between them."""
    for axis, step in enumerate(stride, start=2):
        if step == 1:
            continue
        dims = b.dims(x)
        size = dims[axis]
        rank = len(dims) + 1
        ends = [step - 1 if a == axis + 1 else 0 for a in range(rank)]
        apart = b.Pad(b.unsqueeze(x, [axis + 1]), [*[0] * rank, *ends])
        apart = b.with_shape(apart, [*dims[: axis + 1], step, *dims[axis + 1 :]])
        merged = b.reshape(apart, [*dims[:axis], size * step, *dims[axis + 1 :]])
        length = (size - 1) * step + 1
        cropped = b.slice(merged, axis, 0, length)
        x = b.with_shape(cropped, [*dims[:axis], length, *dims[axis + 1 :]])
    return x
