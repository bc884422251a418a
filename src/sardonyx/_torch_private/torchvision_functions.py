"""Functions of torchvision's detectors whose Python code loops over detections, or turns sizes into
numbers, written on tensors."""

from __future__ import annotations

import sys
from typing import Any

import torch


def batch_images(self: Any, images: list[torch.Tensor], size_divisible: int = 32) -> torch.Tensor:
    """The images in one tensor, padded to the largest and to a multiple of `size_divisible`;
    torchvision rounds by way of `float(size)`."""
    channels, *extents = (max(image.shape[axis] for image in images) for axis in range(3))
    height, width = (
        (extent + size_divisible - 1) // size_divisible * size_divisible for extent in extents
    )
    batched = images[0].new_full([len(images), channels, height, width], 0)
    for index, image in enumerate(images):
        batched[index, : image.shape[0], : image.shape[1], : image.shape[2]].copy_(image)
    return batched


def infer_scale(feature: torch.Tensor, original_size: list[int]) -> float:
    """The power of two nearest to the scale of a feature map: found by comparisons, which say for
    which sizes it is that one; torchvision takes a logarithm of numbers."""
    size, of_image = feature.shape[-2], original_size[0]
    scale = 1.0
    while size * 2**0.5 < of_image * scale:
        scale /= 2
    while size > of_image * scale * 2**0.5:
        scale *= 2
    return scale


def paste_masks_in_image(
    masks: torch.Tensor, boxes: torch.Tensor, img_shape: tuple[int, int], padding: int = 1
) -> torch.Tensor:
    """Each mask, resized to its box, in an image of zeros."""
    heads = sys.modules["torchvision.models.detection.roi_heads"]
    masks, scale = heads.expand_masks(masks, padding=padding)
    boxes = heads.expand_boxes(boxes, scale).to(torch.int64)
    height, width = img_shape
    rows = _resizing(boxes[:, 1], boxes[:, 3], masks.shape[-2], height)
    columns = _resizing(boxes[:, 0], boxes[:, 2], masks.shape[-1], width)
    return (rows.to(masks) @ masks[:, 0] @ columns.to(masks).transpose(1, 2))[:, None]


def _resizing(first: torch.Tensor, last: torch.Tensor, size: int, length: int) -> torch.Tensor:
    """The weights of bilinear interpolation, for each box: those of the `size` elements of its mask
    at each of the `length` pixels, all 0 outside of the box."""
    pixel = torch.arange(length, device=first.device) - first[:, None]
    extent = (last - first + 1)[:, None]
    at = (pixel + 0.5) * (size / extent.clamp(min=1).float()) - 0.5
    distance = at.clamp(0, size - 1)[:, :, None] - torch.arange(size, device=first.device)
    inside = (pixel >= 0) & (pixel < extent)
    return (1 - distance.abs()).clamp(min=0) * inside[:, :, None]


def heatmaps_to_keypoints(
    maps: torch.Tensor, rois: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The best place in each heatmap, resized to its region, and the score there: by the loop that
    torchvision has for TorchScript, since every region has another size."""
    heads = sys.modules["torchvision.models.detection.roi_heads"]
    loop = torch.jit.script(heads._onnx_heatmaps_to_keypoints_loop.__original_fn)
    corner, extent = rois[:, :2], (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    whole = extent.ceil()
    places, scores = loop(
        maps, rois, whole[:, 0], whole[:, 1], extent[:, 0], extent[:, 1], corner[:, 0],
        corner[:, 1], torch.scalar_tensor(maps.shape[1], dtype=torch.int64),
    )  # fmt: skip
    return places.permute(0, 2, 1), scores
