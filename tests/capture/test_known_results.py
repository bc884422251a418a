"""Calls that are alike are run on fake tensors once."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim

import sardonyx
from sardonyx import _torch_private
from sardonyx.capture import given_sizes, infer


class Layers(torch.nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, count, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x)


SIZES = ({0: Dim("batch"), 1: Dim("length")},)


@pytest.mark.parametrize("way", ["given", "trace"])
def test_layers_that_are_alike_are_run_once(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[object] = []
    run = _torch_private.run_on_fakes

    def counted(op, *args):
        runs.append(op)
        return run(op, *args)

    monkeypatch.setattr(_torch_private, "run_on_fakes", counted)
    monkeypatch.setattr(given_sizes._torch_private, "run_on_fakes", counted)
    monkeypatch.setattr(infer._torch_private, "run_on_fakes", counted)
    counts = []
    for count in (1, 4):
        model, x = Layers(count).eval(), torch.randn(3, 7, 8)
        runs.clear()
        if way == "given":
            program = sardonyx.export(torch.export.export(model, (x,), dynamic_shapes=SIZES))
        else:
            program = sardonyx.export(model, (x,), capture="trace", dynamic_shapes=SIZES)
        counts.append(len(runs))
        for sizes in ((3, 7), (1, 1), (2, 5)):
            other = torch.randn(*sizes, 8)
            torch.testing.assert_close(program(other), model(other), rtol=1e-4, atol=1e-5)
    assert 0 < counts[1] <= counts[0] + 3


def test_sizes_that_data_decides_are_apart() -> None:
    class Positions(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.cat([x.nonzero(), y.nonzero(), (x + y).nonzero()])

    x, y = torch.tensor([1.0, 0, 2]), torch.tensor([0.0, 0, 3])
    given = torch.export.export(Positions(), (x, y), dynamic_shapes=({0: Dim("n")}, {0: Dim("n")}))
    for program in (
        sardonyx.export(given),
        sardonyx.export(Positions(), (x, y), capture="trace", dynamic_axes={"x": [0], "y": [0]}),
    ):
        for pair in ((x, y), (torch.zeros(2), torch.ones(2)), (torch.zeros(0), torch.zeros(0))):
            assert torch.equal(program(*pair), Positions()(*pair))


def test_masks_of_one_shape_choose_other_numbers_of_elements() -> None:
    class Chosen(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
            one, other = x[x > 0], y[y > 0]
            return one * 2, other * 2, torch.cat([one, other, torch.ones(other.shape[0])])

    x, y = torch.tensor([1.0, -1, 2]), torch.tensor([-1.0, -2, 3])
    sizes = ({0: Dim("n")}, {0: Dim("n")})
    given = torch.export.export(Chosen(), (x, y), dynamic_shapes=sizes)
    for program in (
        sardonyx.export(given),
        sardonyx.export(Chosen(), (x, y), capture="trace", dynamic_shapes=sizes),
    ):
        for pair in ((x, y), (y, x), (torch.ones(7), -torch.ones(7)), (x[:1], y[:1])):
            for actual, expected in zip(program(*pair), Chosen()(*pair), strict=True):
                assert torch.equal(actual, expected)


def test_shapes_that_are_changed_in_place() -> None:
    class Turned(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            one, other = x.sin(), y.sin()
            one.unsqueeze_(0)
            return one.sum(0) + other.sum(0)

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    sizes = ({0: Dim("n")}, {0: Dim("n")})
    given = torch.export.export(Turned(), (x, y), dynamic_shapes=sizes)
    for program in (
        sardonyx.export(given),
        sardonyx.export(Turned(), (x, y), capture="trace", dynamic_shapes=sizes),
    ):
        for n in (3, 1, 7):
            x, y = torch.randn(n, 4), torch.randn(n, 4)
            torch.testing.assert_close(program(x, y), Turned()(x, y))


def test_types_that_are_equal_to_python_are_not_alike() -> None:
    class Sums(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return x * 1, x * 1.0, x * True

    x = torch.arange(3)
    given = torch.export.export(Sums(), (x,), dynamic_shapes=({0: Dim("n")},))
    expected = [each.dtype for each in Sums()(x)]
    assert [each.dtype for each in sardonyx.export(given)(x)] == expected


@pytest.mark.parametrize("together", [torch.broadcast_tensors, lambda *t: torch.atleast_2d(t)])
@pytest.mark.parametrize("viewed", [lambda t: t, lambda t: t[None], lambda t: t.view(-1, 1)])
def test_calls_that_are_alike_share_no_memory(together, viewed) -> None:
    class Written(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
            one, other = x * 2, y * 2
            ours, theirs = together(viewed(one), viewed(other))
            theirs.add_(1)
            return one + 0, other + 0, ours + 0, theirs + 0

    x, y = torch.randn(4), torch.randn(4)
    sizes = ({0: Dim("n")}, {0: Dim("n")})
    given = torch.export.export(Written(), (x, y), dynamic_shapes=sizes)
    for program in (
        sardonyx.export(given),
        sardonyx.export(Written(), (x, y), capture="trace", dynamic_shapes=sizes),
    ):
        for n in (4, 0, 1, 7):
            x, y = torch.randn(n), torch.randn(n)
            for actual, expected in zip(program(x, y), Written()(x, y), strict=True):
                torch.testing.assert_close(actual, expected)


def test_views_of_known_sizes_are_found_in_the_cache_of_pytorch() -> None:
    class Written(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(20):
                x = x * 2 + x.view(-1).view(2, 3)
                x.view(3, 2).add_(1)
            return x

    before = FakeTensorMode.cache_info().hits
    sardonyx.export(Written(), torch.randn(2, 3), capture="trace")
    assert FakeTensorMode.cache_info().hits - before >= 40
