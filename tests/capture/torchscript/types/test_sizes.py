"""Sizes of tensors that may be empty, against eager."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from tests.capture.torchscript.running import assert_equal_to_eager
from tests.capture.torchscript.types import programs_sizes as programs


@pytest.mark.parametrize(
    ("program", "inputs"), programs.SIZES, ids=[program.__name__ for program, _ in programs.SIZES]
)
def test_equal_to_eager(program, inputs) -> None:
    made = assert_equal_to_eager(program, inputs)
    assert not made.notes or program is programs.equal_in_one_branch


class Rests(torch.nn.Module):
    def forward(self, x):
        counts = torch.full((1,), x[2:].shape[0] * 3), torch.arange((x[-1:] + 1).shape[0] + 1)
        chosen = torch.where(torch.ones(1, 2) > 0, x[:1], torch.ones(1, 2))
        lengths = torch.zeros(chosen.shape[0] + 1), torch.zeros(torch.diff(x, dim=0).shape[0] + 1)
        return torch.zeros((x[1:] * 2).shape[0] + 1), *counts, *lengths


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_recorded_models_count_what_is_left_of_an_empty_tensor(capture) -> None:
    dynamic = ({0: torch.export.Dim.DYNAMIC},)
    made = sardonyx.export(Rests(), (torch.ones(4, 2),), dynamic_shapes=dynamic, capture=capture)
    for size in (0, 1, 2, 5):
        x = torch.ones(size, 2)
        for found, expected in zip(made(x), Rests()(x), strict=True):
            assert found.shape == expected.shape
            assert torch.equal(found, expected)


class Looped(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x, n: int):
        for _i in range(n):
            x = self.linear(x)
        return x


def test_a_dim_that_a_loop_fixes_is_refused() -> None:
    dynamic = ({1: torch.export.Dim.DYNAMIC}, None)
    with pytest.raises(sardonyx.DynamicDimError, match="fixes it to 2"):
        sardonyx.export(torch.jit.script(Looped()), (torch.ones(3, 2), 2), dynamic_shapes=dynamic)
