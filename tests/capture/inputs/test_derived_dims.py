"""Dims that are computed from one that no input has."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim

import sardonyx


class Sizes(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n = x.shape[0]
        return torch.arange(n), x.new_ones(n + 2), x.sum() / n, x[1:], torch.arange(n // 2)


class Both(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.arange(x.shape[0] + y.shape[0]), torch.cat([x, y]), x[: y.shape[0]]


B = Dim("b")
SPECS = {
    "b + 1": (B + 1, (7, 1, 2, 3)),
    "2*b": (2 * B, (8, 2, 4)),
    "3*b + 1": (3 * B + 1, (7, 1, 4)),
}


def _program(model: torch.nn.Module, x: tuple[torch.Tensor, ...], way: str, sizes: tuple) -> object:
    if way == "given":
        return sardonyx.export(torch.export.export(model, x, dynamic_shapes=sizes), verify=True)
    return sardonyx.export(model, x, capture=way, dynamic_shapes=sizes, verify=True)


@pytest.mark.parametrize("way", ["given", "export", "trace"])
@pytest.mark.parametrize("name", SPECS)
def test_the_other_dim_is_read_off_it(way: str, name: str) -> None:
    dim, sizes = SPECS[name]
    program = _program(Sizes(), (torch.randn(sizes[0], 3),), way, ({0: dim},))
    assert program.model.graph.inputs[0].shape[0].value == name
    for n in sizes:
        x = torch.randn(n, 3)
        for actual, expected in zip(program(x), Sizes()(x), strict=True):
            torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("dims", [(2 * B, B), (B, 2 * B), (2 * B, B + 3)])
def test_dims_of_two_inputs(dims: tuple[object, object]) -> None:
    def inputs(b: int) -> tuple[torch.Tensor, torch.Tensor]:
        return tuple(torch.randn(b if d is B else d.fn(b), 3) for d in dims)

    program = _program(Both(), inputs(5), "given", tuple({0: d} for d in dims))
    for b in (5, 3, 7):
        given = inputs(b)
        for actual, expected in zip(program(*given), Both()(*given), strict=True):
            torch.testing.assert_close(actual, expected)


def test_a_dim_that_could_be_negative() -> None:
    with pytest.raises(sardonyx.InvalidOptionError, match=r"'b - 1'.*min value for b"):
        sardonyx.export(Sizes(), (torch.randn(4, 3),), dynamic_shapes=({0: B - 1},))


def masked(tokens, past, mask):
    return torch.cat([past, tokens], 1) * mask


SUM = ({0: "b", 1: "seq"}, {0: "b", 1: "past"}, {0: "b", 1: "past + seq"})


def decode_step(batch, new, past):
    return torch.randn(batch, new), torch.randn(batch, past), torch.randn(batch, past + new)


@pytest.mark.parametrize("capture", ["export", "trace", "script"])
@pytest.mark.parametrize("sizes", [(1, 1, 4), (2, 3, 0), (1, 1, 1)])
def test_a_dim_that_is_the_sum_of_two(sizes, capture):
    model = torch.jit.script(masked) if capture == "script" else masked
    program = sardonyx.export(
        model, decode_step(*sizes), capture=capture, dynamic_shapes=SUM, verify=True
    )
    labels = [run.label for run in program.verify().runs]
    assert len(labels) > 1 and not any("past + seq=" in label for label in labels)
    for given in (decode_step(3, 2, 5), decode_step(1, 1, 1), decode_step(2, 4, 0)):
        torch.testing.assert_close(program(*given), masked(*given))


def test_a_sum_that_the_example_is_not():
    example = (torch.ones(1, 1), torch.ones(1, 4), torch.ones(1, 1))
    message = "'past [+] seq' and is 1, but 'past' is 4 and 'seq' is 1"
    with pytest.raises(sardonyx.InvalidOptionError, match=message):
        sardonyx.export(masked, example, dynamic_shapes=SUM)
    # A label of dynamic_axes may say anything, also where it fits the example.
    names = ("tokens", "past", "mask")
    axes = {name: {1: dims[1]} for name, dims in zip(names, SUM, strict=True)}
    for given in (example, decode_step(1, 2, 3)):
        program = sardonyx.export(lambda tokens, past, mask: mask * 2, given, dynamic_axes=axes)
        assert program(torch.ones(1, 2), torch.ones(1, 3), torch.ones(1, 9)).shape == (1, 9)


def test_a_sum_of_dims_that_no_input_has():
    shapes = ({1: "seq"}, {1: "past"}, {1: "past + sequence"})
    with pytest.raises(sardonyx.InvalidOptionError, match="no input has a dim 'sequence'"):
        sardonyx.export(masked, decode_step(1, 2, 3), dynamic_shapes=shapes)


def test_sizes_that_break_what_was_declared_are_refused():
    program = sardonyx.export(masked, decode_step(1, 2, 3), dynamic_shapes=SUM)
    with pytest.raises(sardonyx.InvalidOptionError, match="is 9, but 'past' is 3 and 'seq' is 2"):
        program(torch.ones(1, 2), torch.ones(1, 3), torch.ones(1, 9))
    with pytest.raises(sardonyx.InvalidOptionError, match="another dim of that name is 1"):
        program(torch.ones(1, 2), torch.ones(4, 3), torch.ones(1, 5))


@pytest.mark.parametrize("name", ["n - n", "__import__('os')", "n if n else 1", "n.real", "1 + 2"])
def test_names_that_are_no_sums_of_dims_are_names(name):
    program = sardonyx.export(
        lambda x, y: (x + 1, y * 2),
        (torch.ones(3), torch.ones(5)),
        dynamic_axes={"x": {0: "n"}, "y": {0: name}},
    )
    assert program(torch.ones(2), torch.ones(9))[1].shape == (9,)
