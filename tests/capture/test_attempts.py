"""The ways that the default capture takes where data decides what the model does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import sardonyx

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
OTHERS = [X, -X, X * 20, torch.zeros(3, 4), X.abs()]


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return self.linear(x)
        return x - 1


class Loops(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        left = int(x.abs().sum())
        while left > 3:
            x = x / 2
            left = left // 2
        for i in range(int(x.argmax())):
            x = x + i
        return {"x": x, "sum": x.sum()}


def early_return(x: torch.Tensor) -> torch.Tensor:
    for row in range(x.shape[0]):
        if bool(x[row].sum() > 2):
            return x[row]
    return x.sum(0)


@pytest.mark.parametrize("model", [Branches(), Loops(), early_return])
def test_branches_and_loops_that_data_decides(model: Any) -> None:
    program = sardonyx.export(model, (X,))
    for x in OTHERS:
        torch.testing.assert_close(program(x), model(x))
    assert "is read as a TorchScript program" in program.notes[0]
    assert program.notes[0].place[0].endswith("test_attempts.py")


class OtherAsScript(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        if x.sum() > 0:
            x = x + 1
        if torch.jit.is_scripting():
            return self.scripted(x)
        return x

    def scripted(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class OtherStructureAsScript(OtherAsScript):
    def scripted(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x]


@pytest.mark.parametrize("model", [OtherAsScript(), OtherStructureAsScript()])
def test_a_script_that_computes_something_else_is_refused(model: nn.Module) -> None:
    with pytest.raises(sardonyx.CaptureError) as caught:
        sardonyx.export(model, (X.abs(),))
    message = str(caught.value)
    assert "as a script the model gives other results" in message or "does not compile" in message
    assert "if x.sum() > 0:" in message


def test_a_refusal_names_every_attempt() -> None:
    with pytest.raises(sardonyx.CaptureError) as caught:
        sardonyx.export(lambda x: x + 1 if x.sum() > 0 else x, (X,))
    rows = str(caught.value).splitlines()[1:]
    named = [row.split()[0] for row in rows]
    assert named[0] == "export" and {"script", "trace", "try"} <= set(named)
