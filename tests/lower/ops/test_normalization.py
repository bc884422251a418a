from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import sardonyx
from tests.lower.ops.harness import NEWEST, check

aten = torch.ops.aten
torch.manual_seed(0)
X2, X3, X4, X5 = (
    torch.randn(5, 6),
    torch.randn(2, 6, 7),
    torch.randn(2, 6, 5, 4) * 3 + 1,
    torch.randn(2, 6, 3, 4, 2),
)
SCALE, SHIFT, MEAN = torch.rand(6) + 0.5, torch.randn(6), torch.randn(6)
VARIANCE = torch.rand(6) + 0.5


def trained(layer: nn.Module) -> nn.Module:
    """With parameters and statistics that are not 0 and 1."""
    for name, tensor in [*layer.named_parameters(), *layer.named_buffers()]:
        if tensor.is_floating_point():
            tensor.data = torch.rand_like(tensor) + (0.5 if "bias" not in name else -0.5)
    return layer


LAYERS = [
    ("batch1d", nn.BatchNorm1d(6), X3),
    ("batch1d-no-spatial", nn.BatchNorm1d(6), X2),
    ("batch2d", nn.BatchNorm2d(6, eps=1e-3), X4),
    ("batch2d-not-affine", nn.BatchNorm2d(6, affine=False), X4),
    ("batch2d-no-statistics", nn.BatchNorm2d(6, track_running_stats=False), X4),
    ("batch3d", nn.BatchNorm3d(6), X5),
    ("instance1d", nn.InstanceNorm1d(6), X3),
    ("instance2d", nn.InstanceNorm2d(6, affine=True, eps=1e-3), X4),
    ("instance2d-unbatched", nn.InstanceNorm2d(6, affine=True), X4[0]),
    ("instance2d-statistics", nn.InstanceNorm2d(6, affine=True, track_running_stats=True), X4),
    ("instance3d", nn.InstanceNorm3d(6), X5),
    ("layer", nn.LayerNorm(4), X4),
    ("layer-many-axes", nn.LayerNorm((6, 5, 4), eps=1e-3), X4),
    ("layer-not-affine", nn.LayerNorm((5, 4), elementwise_affine=False), X4),
    ("layer-no-bias", nn.LayerNorm(4, bias=False), X4),
    ("layer-float64", nn.LayerNorm(4).double(), X4.double()),
    ("layer-float16", nn.LayerNorm(4).half(), X4.half()),
    ("group", nn.GroupNorm(3, 6), X4),
    ("group-not-affine", nn.GroupNorm(2, 6, affine=False), X3),
    ("group-one", nn.GroupNorm(1, 6, eps=1e-3), X5),
    ("group-no-spatial", nn.GroupNorm(2, 6), X2),
    ("group-float64", nn.GroupNorm(2, 6).double(), X4.double()),
    ("rms", nn.RMSNorm(4), X4),
    ("rms-many-axes", nn.RMSNorm((5, 4), eps=1e-2), X4),
    ("rms-not-affine", nn.RMSNorm(4, elementwise_affine=False), X4),
    ("rms-default-eps", nn.RMSNorm(4), X4 * 1e-4),
    ("rms-float64", nn.RMSNorm(4).double(), X4.double()),
    ("rms-float16", nn.RMSNorm(4).half(), X4.half()),
    ("local-response", nn.LocalResponseNorm(3), X4),
]


@pytest.mark.parametrize(("layer", "x"), [c[1:] for c in LAYERS], ids=[c[0] for c in LAYERS])
def test_layers(layer, x):
    check(trained(layer), x)


@pytest.mark.parametrize(
    "layer",
    [
        nn.BatchNorm2d(6),
        nn.InstanceNorm2d(6),
        nn.LayerNorm((5, 4)),
        nn.GroupNorm(2, 6),
        nn.RMSNorm(4),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_sizes_may_change_at_every_opset(layer):
    axes = (0, 1) if isinstance(layer, (nn.LayerNorm, nn.RMSNorm)) else (0, 2, 3)
    other = torch.randn([d + 2 if a in axes else d for a, d in enumerate(X4.shape)])
    check(trained(layer), X4, dynamic={0: axes}, others=[(other,)], opsets=(17, 20, 23))


def test_layer_norm_of_a_size_that_may_change():
    def normalize(x):
        return F.layer_norm(x, x.shape[1:]), F.rms_norm(x, x.shape[2:])

    check(normalize, X3, dynamic={0: (2,)}, others=[(torch.randn(2, 6, 11),)])


FUNCTIONS = [
    ("batch-training", lambda x: F.batch_norm(x, MEAN, VARIANCE, SCALE, SHIFT, True), X4),
    ("batch-training-no-statistics", lambda x: F.batch_norm(x, None, None, training=True), X4),
    (
        "native-batch-norm",
        lambda x: aten.native_batch_norm(x, SCALE, SHIFT, MEAN, VARIANCE, False, 0.1, 1e-5)[0],
        X4,
    ),
    (
        "legit-no-training",
        lambda x: aten._native_batch_norm_legit_no_training(
            x, None, SHIFT, MEAN, VARIANCE, 0.1, 1e-5
        ),
        X4,
    ),
    (
        "legit-no-statistics",
        lambda x: aten._native_batch_norm_legit.no_stats(x, SCALE, SHIFT, True, 0.1, 1e-5),
        X4,
    ),
    (
        "legit-functional",
        lambda x: aten._native_batch_norm_legit_functional(
            x, SCALE, SHIFT, MEAN, VARIANCE, True, 0.3, 1e-5
        ),
        X4,
    ),
    (
        "batch-training-float16",
        lambda x: F.batch_norm(x, MEAN.half(), VARIANCE.half(), training=True),
        X4.half(),
    ),
    ("native-layer-norm", lambda x: aten.native_layer_norm(x, [5, 4], None, None, 1e-3), X4),
    (
        "native-group-norm",
        lambda x: aten.native_group_norm(x, SCALE, SHIFT, 2, 6, 20, 3, 1e-3),
        X4,
    ),
    ("fused-rms-norm", lambda x: aten._fused_rms_norm(x, [4], None, 1e-3), X4),
    ("normalize", lambda x: F.normalize(x, dim=1), X4),
]


@pytest.mark.parametrize(
    ("function", "x"), [c[1:] for c in FUNCTIONS], ids=[c[0] for c in FUNCTIONS]
)
def test_functions(function, x):
    check(function, x)


def test_batch_norm_in_training_mode():
    layer = trained(nn.BatchNorm2d(6))
    other = (torch.randn(3, 6, 5, 4),)
    check(layer, X4, dynamic={0: (0,)}, others=[other], training=sardonyx.TrainingMode.TRAINING)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_weight_norm_of_computed_weights(dim):
    shape = {0: (3, 1, 1), 1: (1, 4, 1), -1: ()}[dim]
    check(lambda v, g: torch._weight_norm(v, g, dim), torch.randn(3, 4, 5), torch.rand(shape))


def test_weight_norm_of_a_layer():
    layer = torch.nn.utils.parametrizations.weight_norm(nn.Conv1d(6, 4, 3))
    check(layer, X3)


def test_half_precision_input_with_single_precision_parameters():
    # Below 17, ONNX Runtime makes a LayerNormalization of the parts, and has none of bfloat16.
    check(lambda x: F.layer_norm(x, (6,), SCALE, SHIFT), X2.bfloat16(), opsets=(NEWEST, 20, 17))


def test_group_norm_of_an_empty_batch():
    others = [(torch.randn(n, 4, 5),) for n in (0, 1)]
    layer = trained(nn.GroupNorm(2, 4))
    check(layer, torch.randn(3, 4, 5), dynamic={0: [0]}, others=others, opsets=[17, 20])
