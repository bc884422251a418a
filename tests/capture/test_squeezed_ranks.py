"""A number of dims that depends on a dynamic size is told of, where nothing else is asked too."""

from __future__ import annotations

import pytest
import torch

import sardonyx


class ByDim(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.squeeze(0).dim() == 2 else x * 3


class ByShape(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.squeeze(x * 2)
        return x * len((y + 1).shape)


class Static(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.unsqueeze(1).squeeze(1).ndim


@pytest.mark.parametrize("capture", ["trace", "export", "auto"])
@pytest.mark.parametrize("kind", [ByDim, ByShape])
def test_the_size_that_it_depends_on(kind: type[torch.nn.Module], capture: str) -> None:
    program = sardonyx.export(
        kind(), torch.randn(3, 4), capture=capture, dynamic_axes={"x": {0: "n"}}
    )
    (note,) = program.notes
    assert "holds where the size of dim 0 is not 1: squeeze drops it there" in note
    assert "squeeze(" in note.partition(".py:")[2]
    for n in (2, 3, 7):
        x = torch.randn(n, 4)
        torch.testing.assert_close(program(x), kind()(x))


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_dims_that_are_fixed(capture: str) -> None:
    program = sardonyx.export(
        Static(), torch.randn(3, 4), capture=capture, dynamic_axes={"x": {0: "n"}}, verify=True
    )
    assert program.notes == ()
    fixed = sardonyx.export(ByDim(), torch.randn(3, 4), capture=capture, verify=True)
    assert fixed.notes == ()
