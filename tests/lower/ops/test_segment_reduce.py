"""Reductions of segments against eager PyTorch."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check

torch.manual_seed(0)
X = torch.randn(6, 3)
LENGTHS = torch.tensor([1, 0, 3, 2])
OFFSETS = torch.tensor([0, 1, 1, 4, 6])


@pytest.mark.parametrize("initial", [None, 0.5])
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
def test_segments(reduce: str, initial: float | None) -> None:
    function = torch.segment_reduce
    check(
        lambda x, n, o: (
            function(x, reduce, lengths=n, initial=initial),
            function(x, reduce, offsets=o, initial=initial),
            function(x[:, 0], reduce, lengths=n, initial=initial, unsafe=True),
        ),
        X,
        LENGTHS,
        OFFSETS,
        others=[(X * 2, LENGTHS.flip(0), torch.tensor([0, 0, 2, 6, 6]))],
    )


def test_inner_axis() -> None:
    lengths = torch.tensor([[2, 0, 1], [0, 3, 0]])
    check(
        lambda x, n: torch.segment_reduce(x, "max", lengths=n, axis=1),
        torch.randn(2, 3, 4),
        lengths,
        others=[(torch.randn(2, 3, 4), lengths.flip(0))],
    )


def test_dynamic_length() -> None:
    check(
        lambda x, n: torch.segment_reduce(x, "sum", lengths=n, unsafe=True),
        X,
        LENGTHS,
        dynamic={0: [0], 1: [0]},
        others=[(torch.randn(8, 3), torch.tensor([5, 3]))],
        captures=("export",),
    )
