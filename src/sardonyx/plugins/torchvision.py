"""The operators of torchvision: suppression, pooling of regions, deformable convolution."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("torchvision::nms")
def nms(b: Builder, dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of the boxes that no better one overlaps, best first."""
    if iou_threshold < 0:
        raise b.refuse("ONNX takes no overlap threshold below 0")
    boxes, confidence = b.cast(dets, torch.float32), b.cast(scores, torch.float32)
    selected = b.NonMaxSuppression(
        b.unsqueeze(boxes, [0]),
        b.unsqueeze(confidence, [0, 1]),
        b.size(dets.dim(0)),
        b.const([min(iou_threshold, 1.0)], torch.float32),
    )
    # Each row says batch, class and box.
    return b.Gather(selected, b.scalar(2, torch.int64), axis=1)


def _boxes_and_images(b: Builder, rois: Tensor) -> tuple[Tensor, Tensor]:
    """The corners of each region, and the index of the image it is in, which stands before them."""
    images = b.Gather(rois, b.scalar(0, torch.int64), axis=1)
    return b.slice(rois, 1, 1, 5), b.cast(images, torch.int64)


@lowering("torchvision::roi_align")
def roi_align(
    b: Builder,
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    boxes, images = _boxes_and_images(b, rois)
    return b.RoiAlign(
        input,
        boxes,
        images,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=spatial_scale,
    )


@lowering("torchvision::roi_pool")
def roi_pool(
    b: Builder,
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[Tensor, None]:
    """The second result, the places of the maxima, is for the backward pass alone."""
    pooled = b.MaxRoiPool(
        input, rois, pooled_shape=[pooled_height, pooled_width], spatial_scale=spatial_scale
    )
    return pooled, None


@lowering("torchvision::ps_roi_align")
def ps_roi_align(
    b: Builder,
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, None]:
    """Every cell of a region reads a separate group of channels."""
    cells = pooled_height * pooled_width
    channels = _channels_per_cell(b, input, cells)
    every = roi_align(
        b, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, True
    )
    flat = b.Reshape(every, [-1, channels, cells * cells])
    own = torch.arange(cells) * (cells + 1)
    picked = b.Gather(flat, own, axis=2)
    return b.Reshape(picked, [-1, channels, pooled_height, pooled_width]), None


def _channels_per_cell(b: Builder, x: Tensor, cells: int) -> int:
    channels = x.static_dim(1)
    if channels is None:
        raise b.refuse("the number of channels must be known at export time")
    return channels // cells


@lowering("torchvision::ps_roi_pool")
def ps_roi_pool(
    b: Builder,
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[Tensor, None]:
    """Every cell of a region is the mean of the pixels in it, of a separate group of channels."""
    channels = _channels_per_cell(b, input, pooled_height * pooled_width)
    boxes, images = _boxes_and_images(b, rois)
    # Halves are rounded away from zero; Round takes them to the even side.
    scaled = b.Mul(boxes, b.scalar(spatial_scale, boxes.dtype))
    corners = b.Mul(b.Sign(scaled), b.Floor(b.Add(b.Abs(scaled), 0.5)))

    def members(axis: int, first: int, cells: int) -> Tensor:
        """[region, cell, pixel]: 1 where a pixel along `axis` is in a cell."""
        start, end = (
            b.slice(corners, 1, first, first + 1),
            b.slice(corners, 1, first + 2, first + 3),
        )
        length = b.Div(b.Max(b.Sub(end, start), 1), float(cells))
        numbers = torch.arange(cells, dtype=torch.float32)
        last = b.scalar(input.dim(axis) - 1, torch.float32)
        low, high = (
            b.Clip(b.Add(edge, start), 0.0, last)
            for edge in (
                b.Floor(b.Mul(length, numbers)),
                b.Ceil(b.Mul(length, numbers + 1)),
            )
        )
        pixels = b.cast(b.Range(0, b.scalar(input.dim(axis), torch.int64), 1), torch.float32)
        inside = b.And(
            b.GreaterOrEqual(pixels, b.unsqueeze(low, [2])), b.Less(pixels, b.unsqueeze(high, [2]))
        )
        return b.cast(inside, input.dtype)

    rows, columns = members(2, 1, pooled_height), members(3, 0, pooled_width)
    height, width = input.dim(2), input.dim(3)
    split = [input.dim(0), channels, pooled_height, pooled_width, height, width]
    regions = b.Gather(b.reshape(input, split), images, axis=0)
    total = b.Einsum(regions, rows, columns, equation="kcpqyx,kpy,kqx->kcpq")
    area = b.Mul(
        b.unsqueeze(b.ReduceSum(rows, [2], keepdims=1), [1]),
        b.unsqueeze(b.ReduceSum(columns, [2], keepdims=0), [1, 2]),
    )
    # An empty cell is 0, as is the sum over it.
    return b.Div(total, b.Max(area, 1.0)), None


@lowering("torchvision::deform_conv2d")
def deform_conv2d(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    kernel = [weight.static_dim(2), weight.static_dim(3)]
    return b.DeformConv(
        input,
        weight,
        offset,
        bias,
        mask if use_mask else None,
        kernel_shape=None if None in kernel else kernel,
        strides=[stride_h, stride_w],
        pads=[pad_h, pad_w] * 2,
        dilations=[dilation_h, dilation_w],
        group=groups,
        offset_group=offset_groups,
    )
