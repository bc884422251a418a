"""Sampling of images on a grid, and affine grids."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dims, Tensor

_GRID_MODES = ("linear", "nearest", "cubic")
_GRID_PADDINGS = ("zeros", "border", "reflection")


@lowering(
    "aten::grid_sampler",
    "aten::grid_sampler_2d",
    "aten::grid_sampler_3d",
    "aten::_grid_sampler_2d_cpu_fallback",
)
def grid_sampler(
    b: Builder,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor:
    return b.GridSample(
        input,
        grid,
        mode=_GRID_MODES[interpolation_mode],
        padding_mode=_GRID_PADDINGS[padding_mode],
        align_corners=int(align_corners),
    )


@lowering("aten::affine_grid_generator")
def affine_grid_generator(b: Builder, theta: Tensor, size: Dims, align_corners: bool) -> Tensor:
    spatial = size[2:]
    if align_corners and not all(isinstance(count, int) and count > 1 for count in spatial):
        return _grid_between_corners(b, theta, spatial)
    result = b.AffineGrid(theta, b.shape(size), align_corners=int(align_corners))
    return b.with_shape(result, [theta.dim(0), *spatial, len(spatial)])


def _grid_between_corners(b: Builder, theta: Tensor, sizes: Dims) -> Tensor:
    """A single place along an axis is in the middle for ATen, and at the start for ONNX."""
    rank = len(sizes)
    total: Tensor | None = None
    for axis, size in enumerate(sizes):
        index = b.cast(b.Mul(arange(b, size), 2), theta.dtype)
        ends = b.scalar(size - 1, theta.dtype)
        places = b.Div(b.Sub(index, ends), b.Max(ends, 1.0))
        # [size, 1 ..., 1] times [batch, 1 ..., rank]; the last axis of the grid comes first.
        column = rank - 1 - axis
        factors = b.transpose(b.slice(theta, 2, column, column + 1), [0, 2, 1])
        spread = b.Mul(
            b.unsqueeze(places, list(range(1, rank - axis + 1))),
            b.unsqueeze(factors, list(range(1, rank))),
        )
        total = spread if total is None else b.Add(total, spread)
    assert total is not None
    moved = b.transpose(b.slice(theta, 2, rank, rank + 1), [0, 2, 1])
    grid = b.Add(total, b.unsqueeze(moved, list(range(1, rank))))
    return b.with_shape(grid, [theta.dim(0), *sizes, rank])
