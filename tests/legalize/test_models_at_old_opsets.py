"""Small forms of the example models at old opsets: in ONNX Runtime as in eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch
from torch import nn

import sardonyx
from examples.models import bert_base, dcgan, resnet50, super_resolution, vit_b_16
from examples.models.word_language_model import RNNModel

# The IR version that came with each opset: runtimes of that time read no newer one.
IR_VERSIONS = {7: 4, 8: 4, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8}


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        self.blocks = nn.Sequential(resnet50.Bottleneck(8, 4, 1), resnet50.Bottleneck(16, 8, 2))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.blocks(self.stem(image)))
        return scores


def _language() -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    return torch.randint(50, (7, 2)), (torch.randn(2, 2, 12), torch.randn(2, 2, 12))


def _cut(module: Any, layers: int = 1) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "LAYERS", layers)
            made: nn.Module = module.make()
            return made

    return make


def _transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()


class Segmenter(nn.Module):
    """What vision models do beside convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.Hardswish(), nn.Conv2d(8, 8, 3, 2, 1)
        )
        self.norm = nn.GroupNorm(2, 8)
        self.up = nn.Conv2d(8, 4, 1)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        small = self.norm(self.down(image))
        large = nn.functional.interpolate(
            self.up(small), size=image.shape[2:], mode="bilinear", align_corners=False
        )
        scores = large.softmax(1).clamp(min=1e-3)
        best, _ = scores.flatten(2).topk(3, dim=2)
        turned = best.gather(2, torch.tensor([2, 0, 1]).expand_as(best))
        return scores.cumsum(3)[:, :, ::2, 1:], turned.tril(1)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any], dict[str, dict[int, str]]]] = {
    "resnet": (
        lambda: ResNet().eval(),
        lambda: (torch.randn(2, 3, 32, 32),),
        {"image": {0: "batch"}},
    ),
    "language": (
        lambda: RNNModel("LSTM", words=50, embedding=8, hidden=12).eval(),
        _language,
        {name: {1: "batch"} for name in ("tokens", "h0", "c0")},
    ),
    "vit": (_cut(vit_b_16), vit_b_16.example_inputs, vit_b_16.dynamic_batch()),
    "bert": (_cut(bert_base), bert_base.example_inputs, bert_base.dynamic_batch()),
    "super_resolution": (
        super_resolution.make,
        lambda: (torch.randn(2, 1, 16, 16),),
        super_resolution.dynamic_batch(),
    ),
    "dcgan": (dcgan.make, dcgan.example_inputs, dcgan.dynamic_batch()),
    "transformer": (
        _transformer,
        lambda: (torch.randn(2, 5, 16),),
        {"tokens": {0: "batch", 1: "length"}},
    ),
    "segmenter": (
        Segmenter,
        lambda: (torch.randn(2, 3, 16, 20),),
        {"image": {0: "batch", 2: "height", 3: "width"}},
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def model_and_inputs(request: pytest.FixtureRequest) -> Any:
    make, inputs, dynamic_axes = MODELS[request.param]
    torch.manual_seed(0)
    return make(), inputs(), dynamic_axes


def _verified(model_and_inputs: Any, opset: int, dynamic: bool) -> sardonyx.ONNXProgram:
    model, inputs, dynamic_axes = model_and_inputs
    return sardonyx.export(
        model,
        inputs,
        input_names=list(dynamic_axes),
        dynamic_axes=dynamic_axes if dynamic else None,
        opset_version=opset,
        capture="trace",
        verify=True,
    )


# Opsets 7 and 8 are for networks of convolutions and recurrent layers; Gelu's Erf came with 9.
OLDEST = ("resnet", "language", "super_resolution", "dcgan")


@pytest.mark.parametrize(("opset", "dynamic"), [(7, True), (8, False)])
@pytest.mark.parametrize("model_and_inputs", OLDEST, indirect=True)
def test_at_the_oldest_opsets(model_and_inputs: Any, opset: int, dynamic: bool) -> None:
    program = _verified(model_and_inputs, opset, dynamic)
    for node in program.model.graph:
        assert node.op_type != "Constant" or node.outputs[0].dtype.is_floating_point()
    assert program.model.ir_version == IR_VERSIONS[opset]


def test_what_the_oldest_opsets_lack_is_named() -> None:
    message = r"(?s)opset 8 cannot express.*Erf \(of Gelu\) +it came with opset 9"
    with pytest.raises(sardonyx.UnsupportedOpsetError, match=message):
        sardonyx.export(nn.GELU(), torch.randn(3), opset_version=8, capture="trace")


@pytest.mark.parametrize(("opset", "dynamic"), [(9, True), (13, True), (9, False)])
def test_runs_as_eager_does(model_and_inputs: Any, opset: int, dynamic: bool) -> None:
    program = _verified(model_and_inputs, opset, dynamic)
    assert program.model.opset_imports[""] == opset
    assert program.model.ir_version == IR_VERSIONS[opset]


def test_the_opsets_between() -> None:
    model, inputs = _transformer(), (torch.randn(2, 5, 16),)
    for opset in (10, 11, 12, 14, 15, 16):
        program = sardonyx.export(
            model, inputs, dynamic_axes={"src": {0: "n", 1: "t"}}, opset_version=opset, verify=True
        )
        proto = program.model_proto
        onnx.checker.check_model(proto, full_check=True)
        assert (proto.opset_import[0].version, proto.ir_version) == (opset, IR_VERSIONS[opset])
