from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.harness import check

aten = torch.ops.aten
torch.manual_seed(0)


def weights(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)) * 0.3


X1, X2, X3 = torch.randn(2, 4, 13), torch.randn(2, 4, 11, 9), torch.randn(2, 4, 6, 7, 5)
BIAS = weights(6)

CASES = [
    ("conv1d", (6, 4, 3), lambda x, w: F.conv1d(x, w, BIAS), X1),
    ("conv1d-all", (6, 2, 3), lambda x, w: F.conv1d(x, w, BIAS, 2, 3, 2, 2), X1),
    ("conv1d-unbatched", (6, 4, 3), lambda x, w: F.conv1d(x, w, padding=1), X1[0]),
    ("conv2d-no-bias", (6, 4, 3, 2), lambda x, w: F.conv2d(x, w), X2),
    (
        "conv2d-all",
        (6, 2, 3, 2),
        lambda x, w: F.conv2d(x, w, BIAS, (2, 1), (1, 3), (1, 2), 2),
        X2,
    ),
    ("conv2d-depthwise", (4, 1, 3, 3), lambda x, w: F.conv2d(x, w, padding=1, groups=4), X2),
    ("conv2d-unbatched", (6, 4, 3, 3), lambda x, w: F.conv2d(x, w, BIAS, 2), X2[0]),
    ("conv2d-same", (6, 4, 4, 3), lambda x, w: F.conv2d(x, w, BIAS, padding="same"), X2),
    (
        "conv2d-same-dilated",
        (6, 4, 2, 3),
        lambda x, w: F.conv2d(x, w, BIAS, padding="same", dilation=(3, 2)),
        X2,
    ),
    ("conv1d-same-even", (6, 4, 4), lambda x, w: F.conv1d(x, w, padding="same"), X1),
    ("conv1d-valid", (6, 4, 4), lambda x, w: F.conv1d(x, w, stride=2, padding="valid"), X1),
    ("conv3d", (6, 4, 3, 2, 2), lambda x, w: F.conv3d(x, w, BIAS, (2, 1, 1), (1, 0, 1)), X3),
    ("conv3d-same", (6, 4, 2, 3, 2), lambda x, w: F.conv3d(x, w, padding="same"), X3),
    ("transpose1d", (4, 6, 3), lambda x, w: F.conv_transpose1d(x, w, BIAS, 2, 1, 1), X1),
    ("transpose2d", (4, 6, 3, 2), lambda x, w: F.conv_transpose2d(x, w, BIAS), X2),
    (
        "transpose2d-all",
        (4, 3, 3, 2),
        lambda x, w: F.conv_transpose2d(x, w, BIAS, (3, 2), (1, 0), (2, 1), 2, (1, 2)),
        X2,
    ),
    (
        "transpose2d-unbatched",
        (4, 6, 3, 2),
        lambda x, w: F.conv_transpose2d(x, w, None, 2),
        X2[0],
    ),
    (
        "transpose3d",
        (4, 6, 2, 3, 2),
        lambda x, w: F.conv_transpose3d(x, w, BIAS, 2, 1, 1),
        X3,
    ),
    (
        "transpose2d-output-padding-above-stride",
        (4, 3, 3, 2),
        lambda x, w: F.conv_transpose2d(x, w, BIAS, (2, 1), (1, 2), (3, 1), 2, 4),
        X2,
    ),
    (
        "transpose1d-output-padding-above-stride",
        (4, 6, 3),
        lambda x, w: F.conv_transpose1d(x, w, None, 1, 3, 2, 1, 3),
        X1,
    ),
    (
        "aten-convolution",
        (6, 4, 3, 3),
        lambda x, w: aten.convolution(x, w, BIAS, [2, 2], [1, 1], [1, 1], False, [0, 0], 1),
        X2,
    ),
    (
        "aten-convolution-one-number-for-all-axes",
        (6, 4, 3, 3),
        lambda x, w: aten.convolution(x, w, BIAS, [2], [1], [1], False, [0], 1),
        X2,
    ),
    (
        "aten-_convolution-transposed",
        (4, 6, 3, 3),
        lambda x, w: aten._convolution(
            x,
            w,
            None,
            [2, 2],
            [1, 1],
            [1, 1],
            True,
            [1, 0],
            1,
            False,
            False,
            True,
            True,
        ),
        X2,
    ),
    ("conv_tbc", (3, 9, 6), lambda x, w: torch.conv_tbc(x, w, BIAS, 1), torch.randn(8, 2, 9)),
]


class Layer(torch.nn.Module):
    def __init__(self, function, shape):
        super().__init__()
        self.function = function
        self.weight = torch.nn.Parameter(weights(*shape))

    def forward(self, x):
        return self.function(x, self.weight)


@pytest.mark.parametrize(
    ("shape", "function", "x"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_equals_eager(shape, function, x):
    check(Layer(function, shape), x)


@pytest.mark.parametrize(
    ("shape", "function", "x", "axes", "other"),
    [
        (
            (6, 4, 3, 3),
            lambda x, w: F.conv2d(x, w, BIAS, 2, 1),
            X2,
            (0, 2, 3),
            (3, 4, 20, 17),
        ),
        (
            (6, 4, 4, 2),
            lambda x, w: F.conv2d(x, w, padding="same"),
            X2,
            (0, 2, 3),
            (1, 4, 5, 6),
        ),
        (
            (4, 6, 3, 3),
            lambda x, w: F.conv_transpose2d(x, w, BIAS, 2, 1, 1),
            X2,
            (0, 3),
            (1, 4, 11, 7),
        ),
        ((6, 4, 3), lambda x, w: F.conv1d(x, w), X1[0], (1,), (4, 30)),
    ],
)
def test_sizes_may_change(shape, function, x, axes, other):
    check(Layer(function, shape), x, dynamic={0: axes}, others=[(torch.randn(other),)])


def test_weight_computed_by_the_model():
    check(lambda x, w: F.conv2d(x, w * 2, padding="same"), X2, weights(3, 4, 3, 3))


def test_modules_at_other_opsets():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 3, padding=1), torch.nn.ConvTranspose2d(8, 2, 2, stride=2)
    )
    check(model, X2, opsets=(17, 23))


def integers(*shape):
    return torch.randint(-(2**40), 2**40, shape)  # products wrap


INTEGER_CASES = [
    (lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2), (2, 4, 9), (6, 4, 3), 6),
    (lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2), 1, 2), (2, 4, 7, 8), (6, 2, 3, 2), 6),
    (lambda x, w, b: F.conv2d(x, w, padding="same"), (4, 7, 8), (3, 4, 4, 3), 3),
    (lambda x, w, b: F.conv3d(x, w, b), (1, 2, 4, 5, 6), (3, 2, 2, 3, 2), 3),
    (lambda x, w, b: F.conv_transpose1d(x, w, b, 3, 1, 2), (2, 4, 5), (4, 6, 3), 6),
    (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, (3, 1), 1, 2, (2, 1)),
        (2, 4, 5, 6),
        (4, 3, 3, 2),
        6,
    ),
]


@pytest.mark.parametrize(("function", "x", "weight", "outputs"), INTEGER_CASES)
def test_integers(function, x, weight, outputs):
    axes = [len(x) - 1]
    other = [size + 3 if axis in axes else size for axis, size in enumerate(x)]
    weight, bias = integers(*weight), integers(outputs)
    check(
        function,
        integers(*x),
        weight,
        bias,
        dynamic={0: axes},
        others=[(integers(*other), weight, bias)],
    )
