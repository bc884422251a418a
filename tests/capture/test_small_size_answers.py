"""torch.export answers what a model asks for sizes from 2 on; what is otherwise below is said."""

from __future__ import annotations

import math

import pytest
import torch

import sardonyx
from tests.ops.harness import check


def _notes(model, *args, axes=(0,), **options) -> tuple[str, ...]:
    asked = options or {"dynamic_axes": {"x": list(axes)}}
    return sardonyx.export(model, args, capture="export", input_names=["x"], **asked).notes


def test_a_question_that_a_size_of_one_answers_otherwise() -> None:
    def model(x):
        return x * 2 if x.shape[0] == 1 else x * 3

    (note,) = _notes(model, torch.randn(5))
    assert "x_dim_0 != 1" in note and "x.shape[0] == 1" in note
    bounded = {"dynamic_shapes": {"x": {0: torch.export.Dim("n", min=2)}}}
    assert _notes(model, torch.randn(5), **bounded) == ()


def test_a_question_that_an_empty_tensor_answers_otherwise() -> None:
    def model(x):
        return x if x.numel() == 0 else x - x.mean()

    (note,) = _notes(model, torch.randn(5, 3), axes=(0, 1))
    assert "x_dim_0*x_dim_1 != 0" in note


def test_a_question_of_one_answer_is_no_note() -> None:
    def model(x):
        return x * 2 if x.shape[0] >= 0 else x

    assert _notes(model, torch.randn(5)) == ()


def test_questions_of_other_sizes_keep_their_lines() -> None:
    def model(x):
        return x + 1 if x.shape[0] == 7 else x - 1

    (note,) = _notes(model, torch.randn(5))
    assert "x_dim_0 != 7" in note and "x.shape[0] == 7" in note


@pytest.mark.parametrize("window", ["hann", "kaiser", "gaussian"])
def test_windows_of_torch_signal_are_special_at_length_one(window: str) -> None:
    make = getattr(torch.signal.windows, window)
    notes = _notes(lambda x: make(x.shape[0], sym=False) * x, torch.randn(5))
    assert any("x_dim_0 != 1" in note or "x_dim_0 > 1" in note for note in notes)


FLOATS = {
    "product": lambda h: math.floor(h * 0.29 * 100),
    "product of a number": lambda h: torch.sym_int(0.29 * h * 100),
    "sum": lambda h: math.floor(h * 0.1 + h * 0.2),
    "difference": lambda h: math.ceil((h * 0.7 - 0.3) * 10),
}


@pytest.mark.parametrize("size", FLOATS.values(), ids=FLOATS)
def test_floats_of_sizes_are_rounded_in_the_order_of_the_model(size) -> None:
    others = [(torch.randn(n),) for n in range(2, 60)]
    check(
        lambda x: torch.zeros(size(x.shape[0])),
        torch.randn(5),
        dynamic={0: (0,)},
        others=others,
        captures=("export",),
    )


EXTREMES = {
    "max of three": lambda x: max(x.shape[0], x.shape[1], 3),
    "min of a shape": lambda x: min(x.shape),
    "max of a float and a number": lambda x: max(x.shape[0] * 0.5, 2.5),
    "max of floats": lambda x: max([x.shape[0] * 0.5, x.shape[1], 2.5]),
}


@pytest.mark.parametrize("extreme", EXTREMES.values(), ids=EXTREMES)
def test_the_largest_of_several_sizes(extreme) -> None:
    others = [(torch.randn(*sizes),) for sizes in ((7, 2, 3), (1, 9, 2), (2, 2, 8))]
    check(
        lambda x: x * extreme(x),
        torch.randn(4, 5, 6),
        dynamic={0: (0, 1, 2)},
        others=others,
        captures=("export",),
    )
