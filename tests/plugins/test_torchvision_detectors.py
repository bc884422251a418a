"""torchvision's detectors by default settings, at sizes of images other than the example's."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import sardonyx
from tests.plugins import torchvision_reference

torchvision_reference.register()
detection = pytest.importorskip(
    "torchvision.models.detection", reason="torchvision is not installed"
)
from torchvision.models.detection.anchor_utils import (  # noqa: E402
    AnchorGenerator,
    DefaultBoxGenerator,
)
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead  # noqa: E402
from torchvision.models.detection.ssd import SSD  # noqa: E402
from torchvision.ops import MultiScaleRoIAlign  # noqa: E402

SIZES = ((40, 56), (60, 44))
DYNAMIC = {"images": [{1: "height", 2: "width"}]}
OF_IMAGES = {"min_size": 48, "max_size": 72}
ONE_LEVEL = {
    **OF_IMAGES,
    "num_classes": 3,
    "anchor_generator": AnchorGenerator(((16,),), ((1.0,),)),
}


class Backbone(nn.Module):
    def __init__(self, levels: int = 2, channels: int = 8) -> None:
        super().__init__()
        self.levels = levels
        self.out_channels: Any = channels
        self.first = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, channels, 3, stride=2, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.second = nn.Conv2d(channels, channels, 3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        first = self.first(x)
        levels = [("0", first), ("1", self.second(first))]
        return OrderedDict(levels[: self.levels])


def region_options() -> dict[str, Any]:
    return {
        **OF_IMAGES,
        "rpn_anchor_generator": AnchorGenerator(((16,), (32,)), ((0.5, 1.0),) * 2),
        "box_roi_pool": MultiScaleRoIAlign(["0", "1"], 4, 2),
        "box_head": TwoMLPHead(8 * 4 * 4, 16),
        "box_predictor": FastRCNNPredictor(16, 3),
        "rpn_pre_nms_top_n_test": 12,
        "rpn_post_nms_top_n_test": 8,
        "box_score_thresh": 0.0,
        "box_detections_per_img": 5,
    }


def faster_rcnn() -> nn.Module:
    return detection.FasterRCNN(Backbone(), **region_options())


def mask_rcnn() -> nn.Module:
    return detection.MaskRCNN(
        Backbone(),
        mask_roi_pool=MultiScaleRoIAlign(["0", "1"], 4, 2),
        mask_head=nn.Conv2d(8, 8, 3, padding=1),
        mask_predictor=nn.ConvTranspose2d(8, 3, 2, 2),
        **region_options(),
    )


def keypoint_rcnn() -> nn.Module:
    return detection.KeypointRCNN(
        Backbone(),
        keypoint_roi_pool=MultiScaleRoIAlign(["0", "1"], 4, 2),
        keypoint_head=nn.Conv2d(8, 8, 3, padding=1),
        keypoint_predictor=nn.ConvTranspose2d(8, 3, 2, 2),
        **region_options(),
    )


def retina_net() -> nn.Module:
    return detection.RetinaNet(
        Backbone(1), score_thresh=0.0, topk_candidates=20, detections_per_img=6, **ONE_LEVEL
    )


def fcos() -> nn.Module:
    return detection.FCOS(
        Backbone(1, channels=32),
        score_thresh=0.0,
        topk_candidates=20,
        detections_per_img=6,
        **ONE_LEVEL,
    )


def ssd() -> nn.Module:
    backbone = Backbone()
    backbone.out_channels = [8, 8]
    return SSD(
        backbone,
        DefaultBoxGenerator([[2], [2]]),
        (64, 64),
        num_classes=3,
        score_thresh=0.0,
        topk_candidates=20,
        detections_per_img=6,
    )


def image(height: int, width: int) -> torch.Tensor:
    return torch.rand(3, height, width, generator=torch.Generator().manual_seed(height))


def sharpened(model: nn.Module) -> nn.Module:
    """With weights so large that scores do not tie."""
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        scale = (2 / parameter[0].numel()) ** 0.5 if parameter.dim() > 1 else 0.05
        parameter.data = noise * scale
    return model.eval()


def assert_equal(program: sardonyx.ONNXProgram, model: nn.Module, images: list[Any]) -> None:
    with torch.no_grad():
        expected = model(images)
    found = program(images)
    assert len(found) == len(expected)
    for given, eager in zip(found, expected, strict=True):
        assert given.keys() == eager.keys()
        assert len(eager["boxes"])
        for name, tensor in eager.items():
            torch.testing.assert_close(given[name], tensor, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("make", [faster_rcnn, mask_rcnn, keypoint_rcnn, retina_net, fcos, ssd])
def test_a_detector_at_other_sizes(make: Callable[[], nn.Module]) -> None:
    model = sharpened(make())
    program = sardonyx.export(model, ([image(*SIZES[0])],), dynamic_shapes=DYNAMIC)
    for size in SIZES:
        assert_equal(program, model, [image(*size)])
    assert not any("text" in note for note in program.notes)


def test_two_images_of_other_sizes() -> None:
    model = sharpened(faster_rcnn())
    images = [image(*size) for size in SIZES]
    assert_equal(sardonyx.export(model, (images,)), model, images)


def test_an_image_without_detections() -> None:
    model = sharpened(retina_net())
    model.score_thresh = 2.0
    (found,) = sardonyx.export(model, ([image(40, 56)],))([image(40, 56)])
    assert {name: tensor.shape for name, tensor in found.items()} == {
        "boxes": (0, 4), "scores": (0,), "labels": (0,),
    }  # fmt: skip
