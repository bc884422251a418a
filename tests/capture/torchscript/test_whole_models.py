"""Whole models with loops and branches over their data, at inputs that change the counts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.capture.torchscript import whole_models as models
from tests.capture.torchscript.running import Inputs, assert_equal_to_eager


def _boxes(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    corner = torch.rand(count, 2, generator=generator) * 4
    size = torch.rand(count, 2, generator=generator) * 3 + 0.5
    return torch.cat([corner, corner + size], dim=1), torch.rand(count, 3, generator=generator)


def _randn(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))


CASES: list[tuple[type[torch.nn.Module], list[Inputs]]] = [
    (models.BeamSearch, [(_randn(8), 4), (_randn(8) * 3, 9), (-_randn(8), 0), (_randn(8), 1)]),
    (
        models.GreedyDecoder,
        [
            (torch.tensor([3, 5, 7]), 4),
            (torch.tensor([2]), 9),
            (torch.tensor([4, 0, 1, 1]), 3),
            (torch.tensor([1, 2, 3, 4, 5]), 0),
        ],
    ),
    (
        models.LoopedRNN,
        [
            (_randn(4, 2, 3), torch.tensor([4, 2])),
            (_randn(7, 3, 3), torch.tensor([7, 1, 0])),
            (_randn(1, 1, 3), torch.tensor([1])),
        ],
    ),
    (models.SlidingWindow, [(_randn(1, 1, 21),), (_randn(1, 1, 8),), (_randn(1, 1, 3),)]),
    (
        models.DetectionPostprocessing,
        [_boxes(7, 0), _boxes(20, 1), _boxes(1, 2), (_boxes(5, 3)[0], torch.zeros(5, 3))],
    ),
    (models.MixtureOfExperts, [(_randn(5, 6),), (_randn(1, 6),), (_randn(40, 6),)]),
]


@pytest.mark.parametrize(("model", "inputs"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_whole_model(model: Any, inputs: list[Inputs]) -> None:
    torch.manual_seed(0)
    assert_equal_to_eager(model().eval(), inputs)
