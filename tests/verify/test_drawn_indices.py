"""Indices that follow from two inputs may be drawn too large: the report says what to do."""

from __future__ import annotations

import torch

import sardonyx


class Product(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(100, 4)

    def forward(self, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        return self.table(i * j)


def test_the_report_says_how_to_give_inputs() -> None:
    example = torch.tensor([[50, 1]]), torch.tensor([[1, 50]])
    program = sardonyx.export(
        Product(), example, dynamic_axes={"i": {1: "n"}, "j": {1: "n"}}, verify=True
    )
    skipped = program.verification.skipped
    assert skipped and all("program.verify(args) takes other inputs" in each for each in skipped)
    others = torch.tensor([[3, 4, 5]]), torch.tensor([[6, 7, 8]])
    assert len(program.verify(others).runs) > 0


def test_other_errors_are_told_alone() -> None:
    class Rows(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[0] != 2:
                raise ValueError("two rows")
            return x * 2

    program = sardonyx.export(Rows(), torch.ones(2, 3), capture="trace", verify=True)
    assert not any("program.verify" in each for each in program.verification.skipped)
