"""Memory that a trace gives back while it goes on."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

import sardonyx
from sardonyx.capture import freed_memory


class Doubles(nn.Module):
    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.times):
            x = (x * 2).view(-1)
        return x.sum()


@pytest.fixture
def trims(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    asked: list[int] = []
    monkeypatch.setattr(freed_memory, "_malloc_trim", lambda: asked.append)
    monkeypatch.setattr(freed_memory, "_BYTES_BETWEEN", 4000)
    monkeypatch.setattr(freed_memory, "_GROWTH_ALLOWED", -(1 << 40))
    return asked


@pytest.mark.parametrize(("size", "times", "expected"), [(1000, 6, 6), (500, 6, 3), (10, 6, 0)])
def test_given_back_once_results_took_so_much(
    size: int, times: int, expected: int, trims: list[int]
) -> None:
    x = torch.ones(size)
    program = sardonyx.export(Doubles(times), (x,), capture="trace", verify=False)
    assert trims == [0] * expected
    assert program(x) == Doubles(times)(x)


def test_kept_where_the_process_has_not_grown(
    trims: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freed_memory, "_GROWTH_ALLOWED", 1 << 40)
    sardonyx.export(Doubles(6), (torch.ones(1000),), capture="trace", verify=False)
    assert trims == []


def test_where_malloc_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed_memory, "_malloc_trim", lambda: None)
    monkeypatch.setattr(freed_memory, "_BYTES_BETWEEN", 1)
    monkeypatch.setattr(freed_memory, "_GROWTH_ALLOWED", -(1 << 40))
    file = io.BytesIO()
    sardonyx.export(Doubles(2), (torch.ones(8),), file, capture="trace")
    assert file.getvalue()
