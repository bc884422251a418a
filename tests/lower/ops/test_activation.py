"""Activations against eager PyTorch, with every argument off its default."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import sardonyx
from tests.lower.ops.harness import check

X = torch.tensor([[-25.0, -3.0, -1.0, -0.25], [0.0, 0.25, 3.5, 25.0]])
IMAGE = torch.randn(2, 3, 4, 5)

CASES: list[tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]]] = [
    ("relu", F.relu, (X,)),
    ("relu_ints", F.relu, (torch.tensor([-3, 0, 4]),)),
    ("relu6", F.relu6, (X,)),
    ("hardtanh", lambda x: F.hardtanh(x, -0.5, 2.0), (X,)),
    ("leaky_relu", lambda x: F.leaky_relu(x, 0.2), (X,)),
    ("elu", F.elu, (X,)),
    ("elu_alpha", lambda x: F.elu(x, alpha=0.7), (X,)),
    ("elu_scales", lambda x: torch.ops.aten.elu(x, 1.5, 2.0, 0.25), (X,)),
    ("selu", F.selu, (X,)),
    ("celu", F.celu, (X,)),
    ("celu_alpha", lambda x: F.celu(x, alpha=2.5), (X,)),
    ("gelu", F.gelu, (X,)),
    ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), (X,)),
    ("silu", F.silu, (X,)),
    ("mish", F.mish, (X,)),
    ("hardswish", F.hardswish, (X,)),
    ("hardsigmoid", F.hardsigmoid, (X,)),
    ("sigmoid", torch.sigmoid, (X,)),
    ("tanh", torch.tanh, (X,)),
    ("softplus", F.softplus, (X,)),
    ("softplus_beta", lambda x: F.softplus(x, beta=2.0, threshold=3.0), (X,)),
    ("softsign", F.softsign, (X,)),
    ("softshrink", lambda x: F.softshrink(x, 0.3), (X,)),
    ("hardshrink", lambda x: F.hardshrink(x, 0.25), (X,)),
    ("shrink_nan", lambda x: (F.softshrink(x), F.hardshrink(x)), (torch.tensor([math.nan, 1.0]),)),
    ("tanhshrink", F.tanhshrink, (X,)),
    ("threshold", lambda x: F.threshold(x, 0.25, -7.0), (X,)),
    ("threshold_ints", lambda x: F.threshold(x, 1, 9), (torch.tensor([-3, 1, 4]),)),
    ("logsigmoid", F.logsigmoid, (X,)),
    ("log_sigmoid_forward", lambda x: torch.ops.aten.log_sigmoid_forward(x), (X,)),
    ("prelu_one", F.prelu, (IMAGE, torch.tensor([0.3]))),
    ("prelu_channels", F.prelu, (IMAGE, torch.tensor([0.3, -0.5, 2.0]))),
    ("prelu_2d", F.prelu, (X, torch.tensor([0.1, 0.2, 0.3, 0.4]))),
    ("prelu_3d", F.prelu, (IMAGE[0], torch.tensor([0.1, 0.2, 0.3, 0.4]))),
    ("prelu_1d", F.prelu, (X[0], torch.tensor([0.1]))),
    ("prelu_0d", F.prelu, (torch.tensor(-2.0), torch.tensor(0.1))),
    ("glu", F.glu, (X,)),
    ("glu_dim", lambda x: F.glu(x, dim=0), (X,)),
    ("rrelu", lambda x: F.rrelu(x, 0.1, 0.5), (X,)),
    ("rank_zero", lambda x: (F.silu(x), F.gelu(x), F.softplus(x)), (torch.tensor(-0.5),)),
    ("gelu_half", F.gelu, (X.half(),)),
    ("silu_half", F.silu, (X.half(),)),
    ("softplus_double", F.softplus, (X.double(),)),
    ("relu_double", F.relu, (X.double(),)),
]


@pytest.mark.parametrize("function, args", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_agrees_with_eager(function: Callable[..., Any], args: tuple[torch.Tensor, ...]) -> None:
    check(function, *args)


MODULES = [torch.nn.PReLU(3), torch.nn.SiLU(inplace=True), torch.nn.GLU(dim=2), torch.nn.ReLU(True)]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: type(m).__name__)
def test_modules_with_dynamic_sizes(module: torch.nn.Module) -> None:
    check(module, IMAGE, dynamic={0: [0, 3]}, others=[(torch.randn(1, 3, 4, 7),)])


def test_random_slopes_of_training() -> None:
    x = -torch.ones(40, 50)
    program = sardonyx.export(
        torch.nn.RReLU(0.1, 0.5), (x,), training=sardonyx.TrainingMode.TRAINING
    )
    slopes = -program(x)
    assert slopes.min() >= 0.1 and slopes.max() < 0.5
    assert abs(slopes.mean() - 0.3) < 0.02
