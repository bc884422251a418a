"""The operators of the installed torchvision, through its own Python API."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check
from tests.plugins.test_torchvision import boxes, regions, seeded
from tests.plugins.torchvision_reference import torchvision_has_operators

pytestmark = pytest.mark.skipif(
    not torchvision_has_operators(), reason="torchvision with its C++ operators is not installed"
)


def test_batched_nms() -> None:
    from torchvision.ops import batched_nms

    check(
        lambda b, s, c: batched_nms(b, s, c, 0.5),
        boxes(12, 4.0),
        seeded(12),
        torch.arange(12) % 3,
        others=[(boxes(12, 9.0, seed=7), seeded(12, seed=3), torch.arange(12) % 2)],
        captures=("export",),
    )


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("sampling_ratio", [-1, 2])
def test_roi_align(aligned: bool, sampling_ratio: int) -> None:
    from torchvision.ops import RoIAlign

    module = RoIAlign((3, 2), 0.5, sampling_ratio, aligned)
    check(module, seeded(2, 3, 8, 9), regions(4, 14.0, 2), opsets=(20,))


def test_roi_pooling() -> None:
    from torchvision.ops import PSRoIAlign, PSRoIPool, RoIPool

    x, rois = seeded(2, 12, 8, 9), regions(5, 20.0, 2)
    for module in (RoIPool((3, 2), 0.5), PSRoIAlign((3, 2), 0.5, 2), PSRoIPool((3, 2), 0.5)):
        check(module, x, rois, opsets=(20,))


@pytest.mark.parametrize("use_mask", [False, True])
def test_deform_conv2d(use_mask: bool) -> None:
    from torchvision.ops import DeformConv2d

    offset = seeded(2, 18, 6, 7) * 4 - 2
    mask = (seeded(2, 9, 6, 7, seed=2),) if use_mask else ()
    check(DeformConv2d(4, 6, 3, padding=1), seeded(2, 4, 6, 7), offset, *mask, opsets=(20,))
