"""Copies that are none where a dynamic size is 1, and writes whose places depend on sizes."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim

import sardonyx

X = torch.randn(5, 4)
CAPTURES = ["trace", "export"]


def of_a_slice(x):
    x = x.clone()
    y = x[:, :2].contiguous()
    y += 1
    return x, y


def of_a_transpose(x):
    x = x.clone()
    y = x.t().reshape(-1)
    x.mul_(2)
    return y


def only_the_copy(x):
    y = x[:, :2].contiguous()
    y += 1
    return y


def before_the_copy(x):
    x = x.clone()
    x[:, 0] = 3
    return x[:, :2].contiguous() + x.t().reshape(4, -1).t()[:, :2]


def never_a_copy(x):
    x = x.clone()
    x.reshape(-1)[1:3].zero_()
    return x


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("model", [of_a_slice, of_a_transpose])
def test_it_is_noted_for_which_sizes_the_copy_is_one(model, capture):
    program = sardonyx.export(model, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    (note,) = program.notes
    assert "the recording holds where n != 1" in note
    assert "test_copied_memory.py:" in note
    for n in (0, 2, 7):
        x = torch.randn(n, 4)
        torch.testing.assert_close(program(x), model(x))


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("model", [only_the_copy, before_the_copy, never_a_copy])
def test_nothing_is_noted_where_it_makes_no_difference(model, capture):
    program = sardonyx.export(model, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert program.notes == ()
    for n in (0, 1, 2, 7):
        x = torch.randn(n, 4)
        torch.testing.assert_close(program(x), model(x))


def test_nothing_is_noted_where_the_size_is_never_one():
    shapes = {"x": {0: Dim("n", min=2)}}
    assert sardonyx.export(of_a_slice, (X,), capture="export", dynamic_shapes=shapes).notes == ()
    assert sardonyx.export(of_a_slice, (X,), capture="export").notes == ()


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("rows", [3, 5])
@pytest.mark.parametrize("wrap", [False, True])
def test_the_diagonal_is_that_of_each_size(wrap, rows, capture):
    def model(x):
        return x.clone().fill_diagonal_(3, wrap), x.t().clone().fill_diagonal_(2.0)

    program = sardonyx.export(
        model, (torch.randn(rows, 4),), capture=capture, dynamic_axes={"x": {0: "n"}}
    )
    assert program.notes == ()
    for n in (0, 1, 2, 4, 7, 13):
        x = torch.randn(n, 4)
        torch.testing.assert_close(program(x), model(x), check_stride=False)


@pytest.mark.parametrize("capture", [*CAPTURES, "script"])
def test_a_diagonal_of_fixed_sizes(capture):
    def model(x: torch.Tensor):
        return x.clone().fill_diagonal_(3.0, True), torch.ones(2, 2, 2).fill_diagonal_(0.0) + x[
            0, 0
        ]

    program = sardonyx.export(model, (torch.randn(9, 4),), capture=capture)
    x = torch.randn(9, 4)
    torch.testing.assert_close(program(x), model(x), check_stride=False)


def test_a_diagonal_of_dynamic_sizes_in_a_script():
    def model(x: torch.Tensor):
        return x.clone().fill_diagonal_(3.0)

    with pytest.raises(sardonyx.CaptureError, match="fill_diagonal_ needs static sizes"):
        sardonyx.export(model, (X,), capture="script", dynamic_axes={"x": {0: "n"}})
