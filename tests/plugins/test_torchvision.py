"""The operators of torchvision by both captures, in ONNX Runtime."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.lower.registry import LIBRARY
from tests.lower.ops.harness import check
from tests.plugins import torchvision_reference

REGION_OPSETS = (17, 20)
"""ONNX Runtime has no kernels of RoiAlign and MaxRoiPool as opset 22 has them."""


@pytest.fixture(scope="module", autouse=True)
def operators() -> None:
    torchvision_reference.register()


def seeded(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def boxes(count: int, size: float, seed: int = 0) -> torch.Tensor:
    corner, extent = seeded(count, 2, seed=seed) * size, seeded(count, 2, seed=seed + 1) * size
    return torch.cat([corner, corner + extent], 1)


def regions(count: int, size: float, images: int, seed: int = 0) -> torch.Tensor:
    image = (torch.arange(count) % images).float().unsqueeze(1)
    return torch.cat([image, boxes(count, size, seed)], 1)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
def test_nms(threshold: float) -> None:
    def function(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return torch.ops.torchvision.nms(boxes, scores, threshold)

    scores = seeded(12, seed=3)
    scores[5] = scores[2]
    check(
        function,
        boxes(12, 10.0),
        scores,
        dynamic={0: [0], 1: [0]},
        others=[
            (boxes(30, 6.0, seed=5), seeded(30)),
            (boxes(2, 6.0), seeded(2)),
            (boxes(0, 6.0), seeded(0)),
        ],
    )


def test_what_follows_nms_has_as_many_rows_as_it_kept() -> None:
    """The number of boxes in the example is not that of every run."""

    def function(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        kept = torch.ops.torchvision.nms(boxes, scores, 0.4)
        return boxes[kept] * 2

    wide = torch.arange(12.0)[:, None] * 10 + torch.tensor([0.0, 0.0, 5.0, 5.0])
    check(function, boxes(12, 3.0), seeded(12), others=[(wide, seeded(12))])


def test_nms_by_class_as_batched_nms_does_it() -> None:
    def function(boxes: torch.Tensor, scores: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        apart = classes.to(boxes)[:, None] * (boxes.max() + 1)
        return torch.ops.torchvision.nms(boxes + apart, scores, 0.5)

    check(function, boxes(9, 4.0), seeded(9), torch.arange(9) % 3)


def test_a_negative_threshold_is_refused() -> None:
    def function(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return torch.ops.torchvision.nms(boxes, scores, -0.5)

    with pytest.raises(sardonyx.SardonyxError, match="threshold below 0"):
        sardonyx.export(function, (boxes(4, 3.0), seeded(4)), capture="trace")


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("sampling_ratio", [-1, 0, 2])
def test_roi_align(aligned: bool, sampling_ratio: int) -> None:
    def function(x: torch.Tensor, rois: torch.Tensor) -> torch.Tensor:
        return torch.ops.torchvision.roi_align(x, rois, 0.5, 3, 2, sampling_ratio, aligned)

    check(
        function,
        seeded(2, 3, 8, 9),
        regions(4, 14.0, 2),
        dynamic={0: [2, 3], 1: [0]},
        others=[(seeded(2, 3, 6, 6), regions(7, 10.0, 2, seed=4))],
        opsets=REGION_OPSETS,
    )


def test_a_thin_region_at_the_border_is_sampled_as_zero_outside() -> None:
    """It counts as a pixel wide; torchvision's Python kernel takes the border outside."""

    def function(x: torch.Tensor, rois: torch.Tensor) -> torch.Tensor:
        return torch.ops.torchvision.roi_align(x, rois, 0.25, 4, 4, 2, False)

    right, bottom = [0.0, 35.0, 3.0, 36.0, 30.0], [0.0, 3.0, 31.0, 30.0, 32.0]
    x, rois = seeded(1, 3, 8, 9), torch.tensor([right, bottom])
    assert not function(x, rois)[0, :, :, 2:].any()
    check(function, x, rois, opsets=REGION_OPSETS)


def test_roi_pool() -> None:
    def function(x: torch.Tensor, rois: torch.Tensor) -> torch.Tensor:
        return torch.ops.torchvision.roi_pool(x, rois, 0.5, 3, 2)[0]

    check(
        function,
        seeded(2, 3, 8, 9),
        regions(5, 20.0, 2),
        dynamic={1: [0]},
        others=[(seeded(2, 3, 8, 9), regions(2, 9.0, 2, seed=4))],
        opsets=REGION_OPSETS,
    )


@pytest.mark.parametrize("sampling_ratio", [-1, 2])
def test_ps_roi_align(sampling_ratio: int) -> None:
    def function(x: torch.Tensor, rois: torch.Tensor) -> torch.Tensor:
        return torch.ops.torchvision.ps_roi_align(x, rois, 0.5, 3, 2, sampling_ratio)[0]

    rois = regions(4, 14.0, 2)
    check(
        function,
        seeded(2, 12, 8, 9),
        rois,
        dynamic={1: [0]},
        others=[(seeded(2, 12, 8, 9), rois[:2])],
        opsets=REGION_OPSETS,
    )


def test_ps_roi_pool() -> None:
    def function(x: torch.Tensor, rois: torch.Tensor) -> torch.Tensor:
        return torch.ops.torchvision.ps_roi_pool(x, rois, 0.5, 3, 2)[0]

    check(
        function,
        seeded(2, 12, 8, 9),
        regions(5, 20.0, 2),
        dynamic={0: [2], 1: [0]},
        others=[(seeded(2, 12, 5, 9), regions(2, 9.0, 2, seed=4))],
    )


@pytest.mark.parametrize(
    ("stride", "pad", "dilation", "groups", "offset_groups", "use_mask"),
    [((1, 1), (0, 0), (1, 1), 1, 1, False), ((2, 1), (1, 2), (1, 2), 2, 2, True)],
)
def test_deform_conv2d(stride, pad, dilation, groups, offset_groups, use_mask) -> None:
    kernel, size = (3, 2), (6, 7)
    weight, bias = seeded(4, 4 // groups, *kernel, seed=1), seeded(4, seed=2)
    out = [
        (s + 2 * p - d * (k - 1) - 1) // st + 1
        for s, p, d, k, st in zip(size, pad, dilation, kernel, stride, strict=True)
    ]

    def function(x: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.ops.torchvision.deform_conv2d(
            x, weight, offset, mask, bias, *stride, *pad, *dilation, groups, offset_groups, use_mask
        )

    def inputs(batch: int) -> tuple[torch.Tensor, ...]:
        taps = offset_groups * kernel[0] * kernel[1]
        offset = seeded(batch, 2 * taps, *out, seed=3) * 4 - 2
        return seeded(batch, 4, *size), offset, seeded(batch, taps if use_mask else 1, *out)

    check(
        function,
        *inputs(2),
        dynamic={0: [0], 1: [0], 2: [0]},
        others=[inputs(3)],
        opsets=(20,),  # DeformConv came with opset 19
    )


def test_signatures_are_schemas() -> None:
    import sardonyx.plugins.torchvision  # noqa: F401

    names = [name for name in LIBRARY.names() if name.startswith("torchvision::")]
    assert len(names) == len(torchvision_reference.SCHEMAS)
    for name in names:
        lowering, op = LIBRARY.get(name), getattr(torch.ops.torchvision, name.split("::")[1])
        assert lowering is not None
        wanted = [argument.name for argument in op.default._schema.arguments]
        assert list(lowering.parameters) == wanted
