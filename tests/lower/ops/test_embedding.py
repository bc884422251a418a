"""Embedding bags against eager PyTorch: modes, weights, padding, empty bags and norms."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.lower.ops.harness import check

GENERATOR = torch.Generator().manual_seed(0)
TABLE = torch.randn(10, 4, generator=GENERATOR)
INDICES = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9])
OFFSETS = torch.tensor([0, 3, 3, 5, 8])
"""Five bags, the second and the last of them empty."""


def opsets_of(mode: str) -> list[int] | None:
    return [18, 20, 23] if mode == "max" else None  # opset 17 scatters no maxima


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 4, -1])
@pytest.mark.parametrize("include_last_offset", [True, False])
def test_bags(mode: str, padding_idx: int | None, include_last_offset: bool) -> None:
    check(
        lambda i, o, w: F.embedding_bag(
            i, w, o, mode=mode, padding_idx=padding_idx, include_last_offset=include_last_offset
        ),
        INDICES, OFFSETS, TABLE,
        opsets=opsets_of(mode),
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_equal_length(mode: str) -> None:
    model = torch.nn.EmbeddingBag(10, 4, mode=mode)
    check(model, INDICES.reshape(2, 4), opsets=opsets_of(mode))


def test_weights_of_samples_at_another_size() -> None:
    def bags(i: torch.Tensor, o: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return F.embedding_bag(i, TABLE, o, mode="sum", per_sample_weights=s)

    weights = torch.randn(8, generator=GENERATOR)
    check(bags, INDICES, OFFSETS, weights, dynamic={0: [0], 1: [0], 2: [0]},
          others=[(INDICES[:6], OFFSETS[:4], weights[:6])])  # fmt: skip


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_dynamic_number_of_bags_with_the_last_offset(mode: str) -> None:
    def inputs(*offsets: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randint(0, 6, (offsets[-1],)), torch.tensor(offsets)

    table = torch.randn(6, 3)
    check(
        lambda i, o: F.embedding_bag(i, table, o, mode=mode, include_last_offset=True),
        *inputs(0, 2, 5),
        dynamic={0: [0], 1: [0]},
        others=[inputs(0, 0, 1, 1, 7), inputs(0, 3), inputs(0, 0)],
    )


# -- max_norm --------------------------------------------------------------------------------------

LONG_TABLE = torch.randn(7, 4, generator=GENERATOR) * 3


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0])
def test_rows_are_shortened(norm_type):
    def read(indices, table):
        rows = F.embedding(indices, table, max_norm=2.0, norm_type=norm_type)
        return rows, table

    check(
        read,
        torch.tensor([[0, 2, 2], [5, 6, 0]]),
        LONG_TABLE,
        dynamic={0: (0,)},
        others=[(torch.tensor([[1, 1, 3]]), LONG_TABLE)],
    )


def test_bags_of_shortened_rows():
    bags = torch.tensor([[0, 2, 2], [5, 6, 0]])
    check(lambda i, t: F.embedding_bag(i, t, max_norm=1.5, mode="sum"), bags, LONG_TABLE)
