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


class InPlace(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.clone().squeeze_(0).dim()


class Returned(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2).squeeze()


class Dims(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, None].squeeze((0, 1)) @ torch.ones(4)


class Static(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.unsqueeze(1).squeeze(1).ndim


@pytest.mark.parametrize("capture", ["trace", "export", "auto"])
@pytest.mark.parametrize("kind", [ByDim, ByShape, InPlace, Returned, Dims])
def test_the_size_that_it_depends_on(kind: type[torch.nn.Module], capture: str) -> None:
    program = sardonyx.export(
        kind(), torch.randn(3, 4), capture=capture, dynamic_axes={"x": {0: "n"}}
    )
    (note,) = program.notes
    assert "holds where the size of dim 0 is not 1: squeeze drops it there" in note
    assert "squeeze" in note.partition(".py:")[2]
    for n in (2, 3, 7):
        x = torch.randn(n, 4)
        torch.testing.assert_close(program(x), kind()(x))


@pytest.mark.parametrize("capture", ["trace", "export", "auto"])
@pytest.mark.parametrize("kind", [InPlace, Returned, Dims])
def test_an_example_of_that_size_is_refused(kind: type[torch.nn.Module], capture: str) -> None:
    with pytest.raises(sardonyx.CaptureError, match=r"treats size 1 of 'n' specially") as error:
        sardonyx.export(kind(), torch.randn(1, 4), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert "squeeze" in str(error.value).partition(".py:")[2]


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_dims_that_are_fixed(capture: str) -> None:
    program = sardonyx.export(
        Static(), torch.randn(3, 4), capture=capture, dynamic_axes={"x": {0: "n"}}, verify=True
    )
    assert program.notes == ()
    fixed = sardonyx.export(ByDim(), torch.randn(3, 4), capture=capture, verify=True)
    assert fixed.notes == ()


def test_tensors_inside_of_a_transform() -> None:
    class Mapped(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.func.vmap(lambda row: row[None].squeeze() * 2)(x) + y.sum()

    x, y = torch.randn(3, 4), torch.randn(5)
    program = sardonyx.export(Mapped(), (x, y), capture="trace", dynamic_axes={"y": {0: "n"}})
    for n in (5, 0, 1):
        y = torch.randn(n)
        torch.testing.assert_close(program(x, y), Mapped()(x, y))


def test_the_last_of_many() -> None:
    class Many(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(300):
                x = x[:, None].squeeze(1)
            return x * x.squeeze().dim()

    program = sardonyx.export(
        Many(), torch.randn(3, 4), capture="trace", dynamic_axes={"x": {0: "n"}}
    )
    assert "the size of dim 0 is not 1" in " ".join(program.notes)
