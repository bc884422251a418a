"""Tensors that are resized in place: what fits the memory they have is a view of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import sardonyx
from tests.lower.ops.harness import CAPTURES, check

X = torch.arange(12.0).reshape(4, 3)

RESIZES: dict[str, Callable[[torch.Tensor], object]] = {
    "fewer": lambda y: y.resize_(2, 2),
    "as_many": lambda y: y.resize_([6, 2]),
    "none": lambda y: y.resize_(0, 3),
    "like_another": lambda y: y.resize_as_(y.new_zeros(5, 2)),
    "by_its_operator": lambda y: torch.ops.aten.resize_(y, [2, 5]),
    "by_the_prim": lambda y: torch.ops.prims.resize(y, [2, 5]),
    "of_a_part": lambda y: y[1:].resize_(2, 2).mul_(3),
}


@pytest.mark.parametrize("name", RESIZES)
def test_memory_is_read_and_written_as_before(name: str) -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.clone()
        whole = y[:]
        RESIZES[name](y)
        y.add_(1)
        return y, whole

    check(model, X)


def test_open_sizes() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.clone().resize_(x.shape[0], 2).add_(1)

    check(model, X, dynamic={0: [0]}, others=[(torch.randn(7, 3),), (torch.randn(1, 3),)])


@pytest.mark.parametrize("capture", CAPTURES)
def test_more_than_there_is_is_refused(capture: str) -> None:
    for grow in (lambda y: y.resize_(5, 3), lambda y: y.mT.resize_(2, 2)):
        with pytest.raises(sardonyx.UnsupportedOperatorError, match="changes the memory"):
            sardonyx.export(lambda x, grow=grow: grow(x.clone()) + 1, (X,), capture=capture)


def test_pinned_memory_is_not_the_file_s() -> None:
    check(lambda x: x + 1 if x.is_pinned() else x - 1, X)
