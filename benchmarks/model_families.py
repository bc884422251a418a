"""The models of the compatibility page: random weights, small inputs, and which dims may vary."""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from benchmarks import decode_steps, tiny_transformers  # noqa: E402
from tests.plugins import torchvision_reference  # noqa: E402


@dataclass(frozen=True)
class Case:
    """A model and its example; several are tried in eager, and the first that runs is exported."""

    model: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None


@dataclass(frozen=True)
class Family:
    package: str
    names: Callable[[], list[str]]
    cases: Callable[[str], Iterator[Case]]


def declare_torchvision_operators() -> None:
    """So that torchvision can be imported beside a PyTorch it was not built for."""
    torchvision_reference.nms = fast_nms
    torchvision_reference.roi_align = fast_roi_align
    if torchvision_reference.register() is not None:
        import torchvision

        torchvision.extension._has_ops = operators_exist
        # Imported there by name; else eager runs a function that is compiled at its first call.
        sys.modules["torchvision.ops.roi_align"]._has_ops = operators_exist  # type: ignore[attr-defined]


def operators_exist() -> bool:
    """A function with a name, as TorchScript compiles the check."""
    return True


def fast_nms(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    order = scores.sort(stable=True, descending=True)[1]
    boxes = dets[order]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    overlap = (shared / (areas[:, None] + areas[None] - shared) > iou_threshold).numpy()
    suppressed, kept = np.zeros(len(boxes), bool), []
    for i in range(len(boxes)):
        if not suppressed[i]:
            kept.append(i)
            suppressed |= overlap[i]
    return order[torch.tensor(kept, dtype=torch.int64)]


def fast_roi_align(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    regions = []
    for roi in rois:
        x1, y1, x2, y2 = roi[1:] * spatial_scale - 0.5 * aligned
        width, height = x2 - x1, y2 - y1
        if not aligned:
            width, height = width.clamp(min=1), height.clamp(min=1)
        rows = sampling_weights(y1, height, pooled_height, sampling_ratio, input.shape[2])
        columns = sampling_weights(x1, width, pooled_width, sampling_ratio, input.shape[3])
        regions.append(rows @ input[int(roi[0])] @ columns.T)
    return (
        torch.stack(regions)
        if regions
        else input.new_zeros(0, input.shape[1], pooled_height, pooled_width)
    )


def sampling_weights(
    start: torch.Tensor, length: torch.Tensor, cells: int, ratio: int, size: int
) -> torch.Tensor:
    """The weights of `size` pixels in each cell along an axis. As in torchvision's C++ kernels,
    places more than a pixel outside are 0; its Python kernel takes the border there."""
    count = ratio if ratio > 0 else int((length / cells).ceil())
    at = start + (torch.arange(cells * count) + 0.5) * (length / (cells * max(count, 1)))
    inside = (at >= -1) & (at <= size)
    distance = at.clamp(0, size - 1)[:, None] - torch.arange(size)
    weights = (1 - distance.abs()).clamp(min=0) * inside[:, None]
    return weights.view(cells, count, size).sum(1) / max(count, 1)


# -- transformers --------------------------------------------------------------------------------

TEXT_DIMS = {
    "input_ids": {0: "batch", 1: "sequence"},
    "attention_mask": {0: "batch", 1: "sequence"},
    "token_type_ids": {0: "batch", 1: "sequence"},
    "bbox": {0: "batch", 1: "sequence"},
    "decoder_input_ids": {0: "batch", 1: "target_sequence"},
    "qformer_input_ids": {0: "batch", 1: "query_sequence"},
    "qformer_attention_mask": {0: "batch", 1: "query_sequence"},
    "classes_input_ids": {0: "all_classes"},
    "classes_attention_mask": {0: "all_classes"},
}
PACKED_DIMS: dict[str, dict[int, str]] = {
    "hidden_states": {0: "patches"},
    "pixel_values": {0: "patches"},
    "grid_thw": {},
}
"""Of images whose patches stand one after another, with the grid of each."""


def transformers_cases(name: str) -> Iterator[Case]:
    for model, inputs in tiny_transformers.tiny_models(name):
        known = PACKED_DIMS if "grid_thw" in inputs else TEXT_DIMS
        dims = {key: known.get(key, {0: "batch"}) for key in inputs}
        yield Case(model, kwargs=dict(inputs), dynamic_shapes=dims)


def decode_cases(name: str) -> Iterator[Case]:
    for model, step, dims in decode_steps.decode_steps(name):
        yield Case(model, kwargs=step, dynamic_shapes=dims)


# -- timm ----------------------------------------------------------------------------------------

SIZE_WORDS = (
    *("test", "atto", "femto", "pico", "nano", "xxxs", "xxs", "xxt", "zepto", "xs"),
    *("tiny", "mini", "micro", "small", "xt", "s", "t", "n", "ti"),
)
LARGE_WORDS = ("giant", "gigantic", "huge", "large", "base", "enormous", "xlarge", "l", "h", "b")


def timm_names() -> list[str]:
    """The smallest model of each module, judged by its name."""
    import timm

    names = []
    for module in timm.list_modules():
        models = timm.list_models(module=module)
        if models:
            names.append(min(models, key=size_by_name))
    return names


def size_by_name(name: str) -> tuple[int, int, str]:
    words = re.split(r"[_\d]+", name)
    ranks = [SIZE_WORDS.index(word) for word in words if word in SIZE_WORDS]
    rank = min(ranks, default=len(SIZE_WORDS) + any(word in LARGE_WORDS for word in words))
    numbers = [int(number) for number in re.findall(r"\d+", name)]
    return rank, sum(numbers), name


def timm_cases(name: str) -> Iterator[Case]:
    import timm

    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False).eval()
    default = model.default_cfg["input_size"]
    for side in sorted({64, 96, 128, default[-1]}):
        if side <= default[-1]:
            yield image_case(model, (2, default[0], side, side))


def image_case(model: nn.Module, shape: tuple[int, ...]) -> Case:
    torch.manual_seed(1)
    return Case(model, (torch.rand(shape),), dynamic_shapes=({0: "batch"},))


# -- torchvision ---------------------------------------------------------------------------------

CLASSIFIERS = (
    *("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s"),
    *("googlenet", "inception_v3", "maxvit_t", "mnasnet0_5", "mobilenet_v2"),
    *("mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnext50_32x4d"),
    *("shufflenet_v2_x0_5", "squeezenet1_0", "swin_t", "swin_v2_t", "vgg11", "vit_b_32"),
    "wide_resnet50_2",
)
SEGMENTATION = ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large")
VIDEO = ("mc3_18", "mvit_v1_b", "r2plus1d_18", "r3d_18", "s3d", "swin3d_t")
OPTICAL_FLOW = ("raft_small",)
INPUT_SHAPES = {
    **dict.fromkeys(CLASSIFIERS, (2, 3, 64, 64)),
    **dict.fromkeys(["maxvit_t", "vit_b_32", "alexnet"], (2, 3, 224, 224)),
    "inception_v3": (2, 3, 96, 96),
    **dict.fromkeys(SEGMENTATION, (2, 3, 64, 64)),
    **dict.fromkeys(VIDEO, (1, 3, 8, 64, 64)),
    "mvit_v1_b": (1, 3, 16, 224, 224),
    "s3d": (1, 3, 16, 224, 224),
}


def torchvision_cases(name: str) -> Iterator[Case]:
    import torchvision

    torch.manual_seed(0)
    options: dict[str, Any] = {"weights": None}
    if name in SEGMENTATION:
        options["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        options["init_weights"] = True
    model = torchvision.models.get_model(name, **options).eval()
    if name in OPTICAL_FLOW:
        images = (torch.rand(2, 3, 128, 128), torch.rand(2, 3, 128, 128))
        yield Case(
            model, images, {"num_flow_updates": 2}, {"image1": {0: "batch"}, "image2": {0: "batch"}}
        )
    else:
        yield image_case(model, INPUT_SHAPES[name])


FEW_PROPOSALS = {"rpn_pre_nms_top_n_test": 50, "rpn_post_nms_top_n_test": 20}
FEW_BOXES = {"detections_per_img": 10}
"""Random weights give hundreds of boxes nearly equal scores, which rounding puts in another order:
with the default of 300, retinanet differs from eager in that order."""
SMALL_IMAGES = {"min_size": 96, "max_size": 128}
DETECTORS: dict[str, dict[str, Any]] = {
    "fasterrcnn_resnet50_fpn": {"num_classes": 5, **SMALL_IMAGES, **FEW_PROPOSALS},
    "fasterrcnn_resnet50_fpn_v2": {"num_classes": 5, **SMALL_IMAGES, **FEW_PROPOSALS},
    "fasterrcnn_mobilenet_v3_large_320_fpn": {
        **SMALL_IMAGES,
        "num_classes": 5,
        "rpn_score_thresh": 0.0,
    },
    "maskrcnn_resnet50_fpn": {
        **SMALL_IMAGES,
        **FEW_PROPOSALS,
        "num_classes": 5,
        "box_detections_per_img": 12,
    },
    "keypointrcnn_resnet50_fpn": {
        **SMALL_IMAGES,
        **FEW_PROPOSALS,
        "num_classes": 2,
        "box_score_thresh": 0.0,
        "box_detections_per_img": 6,
    },
    "retinanet_resnet50_fpn": {
        "num_classes": 5,
        **SMALL_IMAGES,
        **FEW_BOXES,
        "score_thresh": 0.009,
    },
    "fcos_resnet50_fpn": {"num_classes": 5, **SMALL_IMAGES, **FEW_BOXES, "score_thresh": 0.009},
    "ssd300_vgg16": {"num_classes": 5, **FEW_BOXES, "score_thresh": 0.21},
    "ssdlite320_mobilenet_v3_large": {"num_classes": 5, **FEW_BOXES, "score_thresh": 0.21},
}
"""Thresholds at which random weights leave some boxes."""


def detector_cases(name: str) -> Iterator[Case]:
    from torchvision.models import detection

    torch.manual_seed(0)
    make = getattr(detection, name)
    model = make(weights=None, weights_backbone=None, **DETECTORS[name]).eval()
    images = [torch.rand(3, 90, 110)]
    yield Case(model, (images,), dynamic_shapes={"images": [{1: "height", 2: "width"}]})


FAMILIES = {
    "transformers": Family("transformers", tiny_transformers.model_types, transformers_cases),
    "decode": Family("transformers", lambda: list(decode_steps.MODEL_TYPES), decode_cases),
    "timm": Family("timm", timm_names, timm_cases),
    "torchvision": Family(
        "torchvision",
        lambda: [*CLASSIFIERS, *SEGMENTATION, *VIDEO, *OPTICAL_FLOW],
        torchvision_cases,
    ),
    "detectors": Family("torchvision", lambda: list(DETECTORS), detector_cases),
}
