"""torchvision's operators where torchvision is not installed: its schemas, written out in PyTorch.

Slow and plain: each follows the text of torchvision's CPU kernel.
"""

from __future__ import annotations

import functools
import importlib.util
import math

import torch

SCHEMAS = [
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height,"
    " SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    "roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height,"
    " SymInt pooled_width) -> (Tensor, Tensor)",
    "ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height,"
    " SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)",
    "ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height,"
    " SymInt pooled_width) -> (Tensor, Tensor)",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias,"
    " SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h,"
    " SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
]


@functools.cache
def torchvision_has_operators() -> bool:
    """Whether torchvision is there with its C++ operators: beside a CPU build of PyTorch its wheel
    has none, and cannot be imported without them."""
    try:
        import torchvision
    except (ImportError, RuntimeError):
        return False
    return bool(torchvision.extension._has_ops())


@functools.cache
def register() -> torch.library.Library | None:
    """Declares torchvision's operators with the kernels below, where it has none of its own; then
    it can be imported. They stay for the life of the process."""
    if torchvision_has_operators():
        return None
    library = torch.library.Library("torchvision", "DEF")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    for schema in SCHEMAS:
        library.define(schema)
        name = schema.split("(")[0]
        library.impl(name, globals()[name], "CPU")
    if importlib.util.find_spec("torchvision") is not None:
        import torchvision  # which registers the fake kernel of nms alone

        torchvision.extension._has_ops = lambda: True
    for name in (schema.split("(")[0] for schema in SCHEMAS):
        if name != "nms" or importlib.util.find_spec("torchvision") is None:
            fake = globals()[f"fake_{name}"]
            torch.library.register_fake(f"torchvision::{name}", fake, lib=library)
    return library


# -- suppression ---------------------------------------------------------------------------------


def nms(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    order = scores.sort(stable=True, descending=True)[1].tolist()
    areas = (dets[:, 2] - dets[:, 0]) * (dets[:, 3] - dets[:, 1])
    kept: list[int] = []
    for i in order:
        if all(_overlap(dets[i], dets[j], areas[i] + areas[j]) <= iou_threshold for j in kept):
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def _overlap(one: torch.Tensor, other: torch.Tensor, areas: torch.Tensor) -> float:
    low, high = torch.maximum(one[:2], other[:2]), torch.minimum(one[2:], other[2:])
    inter = (high - low).clamp(min=0).prod()
    return float(inter / (areas - inter)) if float(areas) else 0.0


def fake_nms(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    return dets.new_empty([torch.library.get_ctx().new_dynamic_size()], dtype=torch.int64)


# -- regions -------------------------------------------------------------------------------------


def _bilinear(image: torch.Tensor, y: float, x: float) -> torch.Tensor:
    """The channels of `image` at a place between pixels, a pixel beyond the border at most."""
    height, width = image.shape[1:]
    if y < -1 or y > height or x < -1 or x > width:
        return image.new_zeros(image.shape[0])
    y, x = max(y, 0.0), max(x, 0.0)
    top, left = min(int(y), height - 1), min(int(x), width - 1)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy = 0.0 if top >= height - 1 else y - top
    dx = 0.0 if left >= width - 1 else x - left
    upper = image[:, top, left] * (1 - dx) + image[:, top, right] * dx
    lower = image[:, bottom, left] * (1 - dx) + image[:, bottom, right] * dx
    return upper * (1 - dy) + lower * dy


def roi_align(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    result = input.new_zeros(len(rois), input.shape[1], pooled_height, pooled_width)
    for k, (image, *box) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (c * spatial_scale - 0.5 * aligned for c in box)
        width, height = x2 - x1, y2 - y1
        if not aligned:
            width, height = max(width, 1.0), max(height, 1.0)
        bin_h, bin_w = height / pooled_height, width / pooled_width
        rows = sampling_ratio if sampling_ratio > 0 else math.ceil(height / pooled_height)
        columns = sampling_ratio if sampling_ratio > 0 else math.ceil(width / pooled_width)
        for p in range(pooled_height):
            for q in range(pooled_width):
                for i in range(rows):
                    for j in range(columns):
                        y = y1 + p * bin_h + (i + 0.5) * bin_h / rows
                        x = x1 + q * bin_w + (j + 0.5) * bin_w / columns
                        result[k, :, p, q] += _bilinear(input[int(image)], y, x)
                result[k, :, p, q] /= max(rows * columns, 1)
    return result


def fake_roi_align(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    return input.new_empty((rois.size(0), input.size(1), pooled_height, pooled_width))


def _round(number: float) -> int:
    return int(math.copysign(math.floor(abs(number) + 0.5), number))


def _cells(start: int, length: int, count: int, limit: int) -> list[range]:
    size = length / count
    return [
        range(
            min(max(math.floor(n * size) + start, 0), limit),
            min(max(math.ceil((n + 1) * size) + start, 0), limit),
        )
        for n in range(count)
    ]


def roi_pool(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    result = input.new_zeros(len(rois), input.shape[1], pooled_height, pooled_width)
    height, width = input.shape[2:]
    for k, (image, *box) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (_round(c * spatial_scale) for c in box)
        rows = _cells(y1, max(y2 - y1 + 1, 1), pooled_height, height)
        columns = _cells(x1, max(x2 - x1 + 1, 1), pooled_width, width)
        for p, ys in enumerate(rows):
            for q, xs in enumerate(columns):
                if len(ys) and len(xs):
                    cell = input[int(image), :, ys.start : ys.stop, xs.start : xs.stop]
                    result[k, :, p, q] = cell.amax((1, 2))
    return result, torch.zeros_like(result, dtype=torch.int32)


def fake_roi_pool(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    size = (rois.size(0), input.size(1), pooled_height, pooled_width)
    return input.new_empty(size), input.new_empty(size, dtype=torch.int32)


def _own_channels(every: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """From [.., channels, height, width], the channel (c, p, q) at the cell p, q."""
    count = every.shape[1] // (height * width)
    result = every.new_zeros(len(every), count, height, width)
    for p in range(height):
        for q in range(width):
            result[:, :, p, q] = every[:, p * width + q :: height * width, p, q]
    return result


def ps_roi_align(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    every = roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, True)
    result = _own_channels(every, pooled_height, pooled_width)
    return result, torch.zeros_like(result, dtype=torch.int32)


def fake_ps_roi_align(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    channels = input.size(1) // (pooled_height * pooled_width)
    size = (rois.size(0), channels, pooled_height, pooled_width)
    return input.new_empty(size), input.new_empty(size, dtype=torch.int32)


def ps_roi_pool(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    every = input.new_zeros(len(rois), input.shape[1], pooled_height, pooled_width)
    height, width = input.shape[2:]
    for k, (image, *box) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (_round(c * spatial_scale) for c in box)
        # The last row and column are never read.
        rows = _cells(y1, max(y2 - y1, 1), pooled_height, height - 1)
        columns = _cells(x1, max(x2 - x1, 1), pooled_width, width - 1)
        for p, ys in enumerate(rows):
            for q, xs in enumerate(columns):
                if len(ys) and len(xs):
                    cell = input[int(image), :, ys.start : ys.stop, xs.start : xs.stop]
                    every[k, :, p, q] = cell.mean((1, 2))
    result = _own_channels(every, pooled_height, pooled_width)
    return result, torch.zeros_like(result, dtype=torch.int32)


def fake_ps_roi_pool(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    return fake_ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, 0)


# -- deformable convolution ----------------------------------------------------------------------


def _sampled(image: torch.Tensor, y: float, x: float) -> torch.Tensor:
    """Between pixels, with zeros around the image."""
    height, width = image.shape[1:]
    top, left = math.floor(y), math.floor(x)
    total = image.new_zeros(image.shape[0])
    for row, wy in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, wx in ((left, 1 - (x - left)), (left + 1, x - left)):
            if 0 <= row < height and 0 <= column < width:
                total += image[:, row, column] * wy * wx
    return total


def deform_conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    offset: torch.Tensor,
    mask: torch.Tensor,
    bias: torch.Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> torch.Tensor:
    batch, channels = input.shape[:2]
    kh, kw = weight.shape[2:]
    oh, ow = offset.shape[2:]
    columns = input.new_zeros(batch, channels, kh * kw, oh, ow)
    per_group = channels // offset_groups
    moved = offset.view(batch, offset_groups, kh * kw, 2, oh, ow).tolist()
    for n in range(batch):
        for g in range(offset_groups):
            part = slice(g * per_group, (g + 1) * per_group)
            for k in range(kh * kw):
                for p in range(oh):
                    for q in range(ow):
                        dy, dx = (moved[n][g][k][a][p][q] for a in (0, 1))
                        y = p * stride_h - pad_h + (k // kw) * dilation_h + dy
                        x = q * stride_w - pad_w + (k % kw) * dilation_w + dx
                        value = _sampled(input[n, part], y, x)
                        if use_mask:
                            value = value * mask[n, g * kh * kw + k, p, q]
                        columns[n, part, k, p, q] = value
    grouped = columns.view(batch, groups, channels // groups, kh * kw, oh, ow)
    kernels = weight.view(groups, len(weight) // groups, channels // groups, kh * kw)
    result = torch.einsum("ngckpq,gock->ngopq", grouped, kernels).reshape(batch, -1, oh, ow)
    return result + bias[:, None, None]


def fake_deform_conv2d(
    input: torch.Tensor, weight: torch.Tensor, offset: torch.Tensor, *rest: object
) -> torch.Tensor:
    return input.new_empty((input.size(0), weight.size(0), offset.size(2), offset.size(3)))
