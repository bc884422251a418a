"""Elements said more than once: repeat, tile and repeat_interleave."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange, is_number
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Dims, Tensor


@lowering("aten::repeat")
def repeat(b: Builder, self: Tensor, repeats: Dims) -> Tensor:
    x = b.unsqueeze(self, list(range(len(repeats) - self.rank)))
    dims = b.dims(x)
    if all(is_number(r, 1) or is_number(d, 1) for r, d in zip(repeats, dims, strict=True)):
        return b.expand(
            x, [r if is_number(d, 1) else d for r, d in zip(repeats, dims, strict=True)]
        )
    result = b.Tile(x, b.shape(repeats))
    return b.with_shape(result, [d * r for d, r in zip(dims, repeats, strict=True)])


@lowering("aten::repeat_interleave.Tensor")
def repeat_interleave_indices(
    b: Builder, repeats: Tensor, *, output_size: Dim | None = None
) -> Tensor:
    if repeats.const is not None:
        return b.const(torch.repeat_interleave(repeats.const))
    counts = b.cast(repeats, torch.int64)
    most = b.Max(b.ReduceMax(counts, [0], keepdims=1), b.size(0))
    wanted = b.Less(b.unsqueeze(arange(b, most), [0]), b.unsqueeze(counts, [1]))
    # NonZero lists its hits row by row, so each row's index comes as often as it is wanted.
    rows = b.Gather(b.NonZero(wanted), 0, axis=0)
    return b.cast(rows, repeats.dtype)
