"""Fold and unfold: the windows of an image as columns, and back."""

from __future__ import annotations

import math

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.windows import (
    batched,
    gather_windows,
    sliding_positions,
    unbatched_like,
)
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dims, Ints, Tensor, product_of


@lowering("aten::im2col")
def im2col(
    b: Builder, self: Tensor, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Tensor:
    x = batched(b, self, 2)
    batch, channels = b.dims(x)[:2]
    if any(padding):
        x = b.Pad(x, [0, 0, *padding, 0, 0, *padding])
    sizes = [size + 2 * p for size, p in zip(b.dims(self)[-2:], padding, strict=True)]
    windows = zip(sizes, kernel_size, stride, dilation, strict=True)
    positions = [sliding_positions(b, *window) for window in windows]
    # (batch, channels, rows, kernel rows, columns, kernel columns)
    gathered = b.transpose(gather_windows(b, x, positions), [0, 1, 3, 5, 2, 4])
    columns = channels * math.prod(kernel_size)
    blocks = product_of(positions[axis].dim(0) for axis in range(2))
    result = b.reshape(gathered, [batch, columns, blocks])
    return unbatched_like(b, result, self, 2)


@lowering("aten::col2im")
def col2im(
    b: Builder,
    self: Tensor,
    output_size: Dims,
    kernel_size: Ints,
    dilation: Ints,
    padding: Ints,
    stride: Ints,
) -> Tensor:
    columns = batched(b, self, 1)
    result = b.Col2Im(
        columns,
        b.shape(output_size),
        b.shape(kernel_size),
        dilations=dilation,
        pads=[*padding, *padding],
        strides=stride,
    )
    return unbatched_like(b, result, self, 1)
