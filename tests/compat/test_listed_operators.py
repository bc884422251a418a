"""torch-onnx-1.x.rst, "Supported operators": every operator of the list, with the case that the
list leaves out where it names one, and every model."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import sardonyx
from examples.models import MODELS

CAPTURES = pytest.mark.parametrize("capture", ["trace", "export"])

torch.manual_seed(0)
X = torch.randn(2, 3)
Y = torch.randn(2, 3)
BETWEEN = torch.rand(2, 3) * 1.8 - 0.9
POSITIVE = torch.rand(2, 3) + 0.5
SQUARE = torch.randn(3, 3)
SERIES = torch.randn(2, 3, 9)
IMAGE = torch.randn(2, 3, 9, 9)
VOLUME = torch.randn(2, 3, 7, 7, 7)

LISTED = {
    "add": (torch.add, X, Y),
    "sub": (torch.sub, X, Y),
    "mul": (torch.mul, X, Y),
    "div": (torch.div, X, Y),
    "cat": (lambda x, y: torch.cat((x, y), 1), X, Y),
    "mm": (torch.mm, X, SQUARE),
    "addmm": (torch.addmm, X, Y, SQUARE),
    "neg": (torch.neg, X),
    "sqrt": (torch.sqrt, POSITIVE),
    "tanh": (torch.tanh, X),
    "sigmoid": (torch.sigmoid, X),
    "mean": (lambda x: (x.mean(), x.mean(1)), X),
    "sum": (lambda x: (x.sum(), x.sum(1, keepdim=True)), X),
    "prod": (lambda x: (x.prod(), x.prod(1)), X),
    "t": (torch.t, X),
    "expand": (lambda x, y: x[:1].expand(2, 3) + y, X, Y),
    "transpose": (lambda x: x.transpose(0, 1), X),
    "view": (lambda x: x.view(3, 2), X),
    "split": (lambda x: x.split(2, 1), X),
    "squeeze": (lambda x: x[:1].squeeze(0), X),
    "prelu": (nn.PReLU(3, init=0.3), IMAGE),
    "threshold": (lambda x: functional.threshold(x, 0.0, 0.0), X),
    "leaky_relu": (nn.LeakyReLU(0.2), X),
    "glu": (nn.GLU(1), torch.randn(2, 6)),
    "softmax": (nn.Softmax(dim=-1), X),
    "avg_pool2d": (nn.AvgPool2d(3, 2, 1), IMAGE),
    "log_softmax": (nn.LogSoftmax(dim=-1), X),
    "unfold": (nn.Unfold(3), IMAGE),
    "elu": (nn.ELU(0.5), X),
    "concat": (lambda x, y: torch.concat((x, y)), X, Y),
    "abs": (torch.abs, X),
    "index_select": (lambda x: x.index_select(1, torch.tensor([2, 0])), X),
    "pow": (lambda x: (x.pow(2), POSITIVE.pow(x)), X),
    "clamp": (lambda x: (x.clamp(-0.5, 0.5), x.clamp(min=0.1), x.clamp(max=0.1)), X),
    "max": (lambda x, y: (x.max(), torch.max(x, y), *x.max(1)), X, Y),
    "min": (lambda x, y: (x.min(), torch.min(x, y), *x.min(1)), X, Y),
    "eq": (torch.eq, X, Y),
    "gt": (torch.gt, X, Y),
    "lt": (torch.lt, X, Y),
    "ge": (torch.ge, X, Y),
    "le": (torch.le, X, Y),
    "exp": (torch.exp, X),
    "sin": (torch.sin, X),
    "cos": (torch.cos, X),
    "tan": (torch.tan, BETWEEN),
    "asin": (torch.asin, BETWEEN),
    "acos": (torch.acos, BETWEEN),
    "atan": (torch.atan, X),
    "permute": (lambda x: x.permute(2, 0, 1), SERIES),
    "Conv": (nn.Conv2d(3, 4, 3, 2, 1), IMAGE),
    "BatchNorm": (nn.BatchNorm2d(3), IMAGE),
    "MaxPool1d": (nn.MaxPool1d(3, 2), SERIES),
    "MaxPool2d": (nn.MaxPool2d(3, 2, 1), IMAGE),
    "MaxPool3d": (nn.MaxPool3d(3, 2), VOLUME),
    "Embedding": (nn.Embedding(9, 4), torch.tensor([[0, 8, 3]])),
    "RNN": (nn.RNN(3, 5), torch.randn(4, 2, 3)),
    "ConstantPadNd": (nn.ConstantPad2d((1, 2, 0, 1), 0.5), IMAGE),
    "Dropout": (nn.Dropout(), X),
    "FeatureDropout": (nn.Dropout2d(), IMAGE),
    "Index": (lambda x: (x[1], x[0, 2], x[(1, 0)], x[:, 1:]), X),
}

# The list's words in brackets: what each of them excludes.
LIFTED = {
    "add: nonzero alpha not supported": (lambda x, y: torch.add(x, y, alpha=2.5), X, Y),
    "sub: nonzero alpha not supported": (lambda x, y: torch.sub(x, y, alpha=-3), X, Y),
    "expand: only before a broadcasting operator": (lambda x: x[:, :1].expand(2, 7), X),
    "prelu: single weight shared among channels not supported": (nn.PReLU(), IMAGE),
    "threshold: non-zero threshold or value not supported": (nn.Threshold(0.3, -2.0), X),
    "softmax: only dim=-1 supported": (nn.Softmax(dim=1), IMAGE),
    "avg_pool2d: ceil_mode not supported": (nn.AvgPool2d(4, 2, 1, ceil_mode=True), IMAGE),
    "unfold: experimental": (nn.Unfold((2, 3), dilation=2, padding=1, stride=(2, 1)), IMAGE),
    "MaxPool1d: ceil_mode not supported": (nn.MaxPool1d(4, 2, ceil_mode=True), SERIES),
    "MaxPool2d: ceil_mode not supported": (nn.MaxPool2d(4, 2, ceil_mode=True), IMAGE),
    "MaxPool3d: ceil_mode not supported": (nn.MaxPool3d(2, 2, ceil_mode=True), VOLUME),
    "Embedding: no optional arguments": (
        nn.Embedding(9, 4, padding_idx=0, scale_grad_by_freq=True),
        torch.tensor([[0, 8, 3]]),
    ),
    "Embedding: max_norm": (nn.Embedding(9, 4, max_norm=1.0), torch.tensor([[0, 8, 3]])),
    "Index: constant integer and tuple indices": (
        lambda x, i: (x[i], x[:, i], x[x[:, 0] > -9, None], x[..., -1]),
        torch.randn(4, 3),
        torch.tensor([2, 0]),
    ),
}


@CAPTURES
@pytest.mark.parametrize("name", LISTED)
def test_listed(name, capture):
    """'The following operators are supported'."""
    model, *args = LISTED[name]
    sardonyx.export(model, tuple(args), capture=capture, verify=True)


@CAPTURES
@pytest.mark.parametrize("name", LIFTED)
def test_beyond_the_list(name, capture):
    """Each exception that the list names in brackets."""
    model, *args = LIFTED[name]
    sardonyx.export(model, tuple(args), capture=capture, verify=True)


@CAPTURES
def test_feature_dropout_in_training(capture):
    """'FeatureDropout (training mode not supported)': whole channels go, others at every run."""
    program = sardonyx.export(
        nn.Dropout2d(0.5),
        torch.ones(8, 16, 2, 2),
        training=sardonyx.TrainingMode.TRAINING,
        capture=capture,
    )
    first, second = program(torch.ones(8, 16, 2, 2)), program(torch.ones(8, 16, 2, 2))
    assert not torch.equal(first, second)
    assert set(first.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(first.amin((2, 3)), first.amax((2, 3)))


@pytest.mark.parametrize(
    "name", ["dcgan", "super_resolution", "word_language_model_lstm", "word_language_model_gru"]
)
def test_listed_models(name):
    """'The operator set above is sufficient to export the following models'. tests/models has the
    larger ones, AlexNet, DenseNet, Inception, ResNet and VGG, in both captures."""
    example = MODELS[name]
    sardonyx.export(example.make(), example.example_inputs(1), verify=True)


def test_every_listed_model_is_an_example():
    families = ("alexnet", "dcgan", "densenet", "inception", "resnet", "super", "vgg", "word_lang")
    for family in families:
        assert any(name.startswith(family) for name in MODELS)
