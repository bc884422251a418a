"""A model as it is (traced and exported) and scripted gives the same numbers."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.capture.torchscript.running import assert_same, exported


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x)))) * scale


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Residual(6) for _ in range(3)])

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        seen: list[Tensor] = []
        for block in self.blocks:
            x = block(x)
            seen.append(x.mean(-1))
        return x, seen


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1, groups=4),
            nn.Hardswish(inplace=True),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.5),
            nn.Linear(32, 5),
        )

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        logits = self.net(x)
        return {"logits": logits, "probabilities": logits.softmax(-1)}


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(10, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (_, cell) = self.lstm(x)
        z, _ = self.gru(y.transpose(0, 1))
        return z, cell


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[:, 0] += 1
        view = y[:, 1:]
        view.mul_(2)
        view[0].zero_()
        return y.relu_()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        out, _ = self.attention(x, x, x, key_padding_mask=mask, need_weights=False)
        return out


class Sizes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        batch, height, width = x.shape
        pad = (4 - width % 4) % 4
        x = torch.nn.functional.pad(x, [0, pad])
        x = x.view(batch, height, -1, 4).mean(2)
        positions = torch.arange(height, dtype=x.dtype) / max(height - 1, 1)
        return x + positions[None, :, None]


def _randn(*sizes: int) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))


CASES: list[tuple[type[nn.Module], list[tuple[Any, ...]]]] = [
    (Stack, [(_randn(2, 3, 6),), (_randn(5, 3, 6),), (_randn(1, 3, 6),)]),
    (Convolutional, [(_randn(2, 3, 12, 12),), (_randn(3, 3, 12, 12),), (_randn(1, 3, 12, 12),)]),
    (Recurrent, [(_randn(2, 3, 4),), (_randn(2, 7, 4),), (_randn(2, 1, 4),)]),
    (InPlace, [(_randn(3, 4),), (_randn(5, 4),), (_randn(1, 4),)]),
    (
        Attention,
        [
            (_randn(2, 4, 8), torch.zeros(2, 4, dtype=torch.bool)),
            (_randn(3, 4, 8), torch.arange(4).expand(3, 4) > 2),
            (_randn(1, 4, 8), torch.arange(4).expand(1, 4) > 1),
        ],
    ),
    (Sizes, [(_randn(2, 3, 6),), (_randn(4, 2, 8),), (_randn(3, 5, 9),)]),
]


@pytest.mark.parametrize(("model", "inputs"), CASES, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.parametrize("capture", ["trace", "export", "script"])
def test_each_capture_gives_what_eager_does(
    model: type[nn.Module], inputs: list[tuple[Any, ...]], capture: str
) -> None:
    torch.manual_seed(0)
    module = model().eval()
    program = exported(module, inputs, capture=capture)
    for each in inputs:
        assert_same(program(*copy.deepcopy(each)), module(*copy.deepcopy(each)))
