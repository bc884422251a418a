"""A model whose maps shrink to one element in the example is recorded once, and holds for more."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import sardonyx


class Counted(nn.Sequential):
    runs = 0

    def forward(self, x):
        Counted.runs += 1
        return super().forward(x)


def halved(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_a_last_map_of_one_element(batch):
    model = Counted(
        halved(3, 4),
        *(halved(4, 4) for _ in range(4)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 2),
    ).eval()
    runs = Counted.runs
    program = sardonyx.export(
        model,
        (torch.randn(batch, 3, 32, 32),),
        capture="export",
        dynamic_axes={"x": {0: "b", 2: "h", 3: "w"}},
        input_names=["x"],
    )
    assert Counted.runs == runs + 1
    assert program.notes == ()
    for shape in ((1, 3, 32, 32), (2, 3, 64, 96), (5, 3, 33, 47), (1, 3, 1, 2)):
        x = torch.randn(shape)
        torch.testing.assert_close(program(x), model(x), atol=1e-4, rtol=1e-4)


class Windows(nn.Module):
    """Windows of four by four, which a padded map is divided into."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(16, 16)
        self.bias = nn.Parameter(torch.randn(16, 1))

    def forward(self, x):
        b, h, w, c = x.shape
        x = F.pad(x, (0, 0, 0, -w % 4, 0, -h % 4))
        rows, columns = x.shape[1] // 4, x.shape[2] // 4
        x = x.view(b, rows, 4, columns, 4, c).transpose(2, 3).reshape(-1, 16, c)
        x = self.mix(x.transpose(1, 2)).transpose(1, 2).relu() + self.bias
        x = x.view(b, rows, columns, 4, 4, c).transpose(2, 3).reshape(b, rows * 4, columns * 4, c)
        return x[:, :h, :w]


def test_one_window():
    model = Windows()
    program = sardonyx.export(
        model,
        (torch.randn(4, 4, 4, 5),),
        capture="export",
        dynamic_axes={"x": {0: "b", 1: "h", 2: "w"}},
        input_names=["x"],
    )
    for shape in ((4, 4, 4, 5), (1, 1, 2, 5), (2, 8, 5, 5), (3, 7, 9, 5)):
        x = torch.randn(shape)
        torch.testing.assert_close(program(x), model(x), atol=1e-4, rtol=1e-4)


def shrunk(x):
    return F.avg_pool1d(x.t(), 8, 8)


TAKEN_APART = {
    "renorm": lambda x: torch.renorm(shrunk(x), 2, 0, 1.0),
    "pairwise_distance": lambda x: F.pairwise_distance(shrunk(x).t(), shrunk(x).t() * 2),
    "cosine_similarity": lambda x: F.cosine_similarity(shrunk(x).relu(), shrunk(x)[:, :1], 0),
    "trapezoid": lambda x: torch.trapezoid(shrunk(x).relu(), dim=1),
    "first": lambda x: shrunk(x).relu() + shrunk(x)[:, :1],
    "written": lambda x: shrunk(x).add_(shrunk(x).mean(1, keepdim=True)),
}


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("name", TAKEN_APART)
def test_a_length_of_one_stands_for_more(name, capture):
    model = TAKEN_APART[name]
    program = sardonyx.export(
        model,
        (torch.randn(9, 3),),
        capture=capture,
        dynamic_axes={"x": {0: "n"}},
        input_names=["x"],
    )
    for n in (8, 9, 16, 40):
        x = torch.randn(n, 3)
        torch.testing.assert_close(program(x), model(x))
