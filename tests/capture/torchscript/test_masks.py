"""Indexing by masks, of bools and of bytes."""

from __future__ import annotations

import pytest
import torch

from tests.capture.torchscript.running import assert_equal_to_eager

MASKED = [(torch.randn(4, 3), torch.tensor(place)) for place in (1, 0, 2)]


def mask_and_place(x, place):
    return x[x[:, 0] > 0, place]


def bytes_as_mask(x, place):
    return x[(x[:, 0] > 0).to(torch.uint8)]


def bytes_as_mask_and_place(x, place):
    return x[(x[:, 0] > 0).to(torch.uint8), place]


def rows_written_by_bytes(x, place):
    y = x.clone()
    y[torch.ones(4, dtype=torch.uint8)] = x * place
    return y


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize(
    "program", [mask_and_place, bytes_as_mask, bytes_as_mask_and_place, rows_written_by_bytes]
)
def test_masks_beside_places_and_of_bytes(program) -> None:
    assert_equal_to_eager(program, MASKED)
