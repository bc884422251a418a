"""torch.export answers what a model asks for sizes from 2 on; what is otherwise below is said."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import sardonyx
from sardonyx.notes import NoteKind
from tests.lower.ops.harness import check


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


CHOSEN = {
    "max by a key": lambda x: max(x.shape, key=lambda size: -size),
    "max of pairs": lambda x: max((x.shape[0], 1), (5, 2))[1],
    "min of a list of pairs": lambda x: min([(x.shape[0], 3), (2, 7)])[1],
    "dictionary": lambda x: {True: 3, False: 4}[x.shape[0] > 1],
    "list": lambda x: [3, 4][x.shape[0] > 1],
}


@pytest.mark.parametrize("chosen", CHOSEN.values(), ids=CHOSEN)
def test_one_of_several_chosen_by_sizes_is_said(chosen) -> None:
    notes = _notes(lambda x: x * chosen(x), torch.randn(4, 3))
    assert any("the model decides by it" in note and "x_dim_0" in note for note in notes)


def test_a_number_of_elements_that_is_a_float_of_a_size() -> None:
    def written(x):
        y = torch.arange(x.shape[0] * 1.0)
        y[-(y.shape[0] // 2) :] = 3.0
        return y

    def chosen(x):
        y = torch.zeros(math.ceil((x.shape[0] - 1) * 0.5))
        return torch.where(y[:1] > 0, y, y.sum(0, keepdim=True))

    others = [(torch.randn(n),) for n in (1, 2, 7)]
    for model in (written, chosen):
        check(model, torch.randn(5), dynamic={0: (0,)}, others=others, captures=("export",))


QUOTIENTS = {
    "of a size": lambda n: n // 0.1,
    "of a float": lambda n: (n * 0.7) // 0.1,
    "negative": lambda n: n // -0.1,
    "of a number": lambda n: 4.5 // (n + 1),
    "whole": lambda n: n // 3.0,
    "of halves": lambda n: (n * 0.3) // 0.5,
}


@pytest.mark.parametrize("quotient", QUOTIENTS.values(), ids=QUOTIENTS)
def test_whole_quotients_of_floats_are_those_of_python(quotient) -> None:
    others = [(torch.randn(n),) for n in (1, 2, 3, 4, 7, 70)]
    check(
        lambda x: torch.ones_like(x) * quotient(x.shape[0]),
        torch.randn(5),
        dynamic={0: (0,)},
        others=others,
        captures=("export",),
    )


@pytest.mark.parametrize("example", [0, 1, 5])
def test_a_bound_that_a_small_example_does_not_reach_is_nothing_special(example: int) -> None:
    def model(x):
        return x[: min(x.shape[0], 2)] * max(x.shape[0], 3)

    others = [(torch.randn(n),) for n in (0, 1, 2, 7)]
    check(model, torch.randn(example), dynamic={0: (0,)}, others=others, captures=("export",))


def _is_one(x: torch.Tensor) -> bool:
    return x.shape[0] == 1


TABLE = torch.ones(40)
TABLE[20:] = 2
DECISIONS = {
    "other numbers": lambda x, past: x * 2 if x.shape[0] > 1 else x * 3,
    "other sizes": lambda x, past: torch.cat([past[-4:] if _is_one(x) else past, x]),
    "sizes far off": lambda x, past: torch.cat([past[-40:] if _is_one(x) else past, x]),
    "positions": lambda x, past: past * (torch.arange(len(past)) < 90) if _is_one(x) else past,
    "scaled": lambda x, past: past * (torch.arange(len(past)) * 0.01 < 0.5) if _is_one(x) else past,
    "integers": lambda x, past: (past.long() % 70) if _is_one(x) else past.long(),
    "a write": lambda x, past: past.zero_() if _is_one(x) else past,
    "a write that is not returned": lambda x, past: (
        x + 0 * (past.zero_() if _is_one(x) else past)[0]
    ),
    "sizes of a table": lambda x, past: past * TABLE[: len(past)] if _is_one(x) else past,
    "size 2": lambda x, past: past * x.shape[0] if x.shape[0] < 3 else past * 1,
    "another branch": lambda x, past: past * (1 + (len(past) > 90)) if _is_one(x) else past,
    "large values": lambda x, past: past.clamp(max=90) if _is_one(x) else past,
    "negative values": lambda x, past: past.relu() if _is_one(x) else past,
    "NaN": lambda x, past: past.nan_to_num() if _is_one(x) else past,
    "values of the example": lambda x, past: past * 0 + 1 if _is_one(x) else past * 0 + x[0],
}


@pytest.mark.parametrize("capture", ["export", "trace"])
@pytest.mark.parametrize("model", DECISIONS.values(), ids=DECISIONS)
def test_what_a_model_decides_by_a_small_size_is_special(model, capture) -> None:
    example = torch.ones(1), torch.ones(3)
    with pytest.raises(sardonyx.DynamicDimError, match="specially"):
        sardonyx.export(model, example, dynamic_shapes=({0: "n"}, {0: "past"}), capture=capture)


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_what_a_model_decides_by_two_small_sizes_is_special(capture) -> None:
    def first(x):
        return x[:1].expand_as(x) if x.shape[1] == 1 else x

    def both(x):
        return x * 2 if x.shape[1] == 1 and x.shape[0] != 1 else x

    for model in (first, both):
        with pytest.raises(sardonyx.DynamicDimError, match="specially"):
            sardonyx.export(
                model, torch.randn(1, 1), dynamic_shapes=({0: "b", 1: "n"},), capture=capture
            )


def test_a_branch_for_one_size_that_was_checked_is_a_note() -> None:
    def model(x, past):
        return torch.cat([past, x.sum(0, keepdim=True) if _is_one(x) else x])

    dims = {0: "n"}, {0: "past"}
    program = sardonyx.export(model, (torch.randn(1), torch.randn(3)), dynamic_shapes=dims)
    (note,) = program.notes
    assert note.kind is NoteKind.CHECKED_BRANCH and note.place[2].startswith("return torch.cat")
    assert "the same results at n = 1, past = 1, 2, 3" in note


class Cache:
    """Keys and values of the tokens so far."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys, self.values = keys, values

    def update(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys = torch.cat([self.keys, keys], 2)
        self.values = torch.cat([self.values, values], 2)


torch.utils._pytree.register_pytree_node(
    Cache, lambda c: ([c.keys, c.values], None), lambda leaves, _: Cache(*leaves)
)


class Decoder(torch.nn.Module):
    """Attention that has code of its own for one token, as that of transformers has."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(8, 16)

    def forward(self, x, mask, cache):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 4, 4).transpose(1, 2).split([2, 1, 1], 1)
        cache.update(k, v)
        k, v = cache.keys, cache.values
        if length == 1:
            seen = mask[:, None, None].expand(-1, -1, 2, -1)
            out = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, seen).transpose(1, 2)
        else:
            places = torch.arange(k.shape[2])
            seen = mask[:, None, None] & (places <= places[-length:, None])
            k, v = k.expand(-1, 2, -1, -1), v.expand(-1, 2, -1, -1)
            out = F.scaled_dot_product_attention(q, k, v, seen)
        return out.transpose(1, 2).flatten(2), cache


def _step(batch: int, length: int, past: int) -> tuple[Any, ...]:
    mask = torch.ones(batch, past + length, dtype=torch.bool)
    mask[:, : past // 2] = batch < 3
    cache = Cache(torch.randn(batch, 1, past, 4), torch.randn(batch, 1, past, 4))
    return torch.randn(batch, length, 8), mask, cache


@pytest.mark.parametrize("sequence", ["sequence", 1])
@pytest.mark.parametrize("capture", ["export", "trace"])
def test_a_decode_step_of_one_token(capture, sequence) -> None:
    cache = [{0: "batch", 2: "past"}] * 2
    model, example = Decoder(), _step(1, 1, 5)
    tokens, seen = {0: "batch"}, {0: "batch", 1: f"past + {sequence}"}
    if sequence != 1:
        tokens[1] = sequence
    before = example[2].keys
    program = sardonyx.export(
        model, example, dynamic_shapes=(tokens, seen, cache), capture=capture, verify=True
    )
    assert example[2].keys is before
    assert len(program.notes) == (sequence != 1)
    for batch, length, past in ((1, 1, 5), (3, 1, 9), (3, 4, 2)):
        if length == 1 or sequence != 1:
            step = _step(batch, length, past)
            found, kept = program(*step)
            expected, cached = model(*step)
            torch.testing.assert_close(found, expected)
            assert type(kept) is Cache and type(kept.keys) is torch.Tensor
            torch.testing.assert_close(kept.keys, cached.keys)


def test_a_mask_as_long_as_one_new_token_and_those_of_the_past() -> None:
    def model(new, past, mask):
        missing = past.shape[0] + new.shape[0] - mask.shape[0]
        mask = torch.nn.functional.pad(mask, (0, missing)) if missing > 0 else mask
        return torch.cat([past, new]) * mask

    def args(new: int, past: int) -> tuple[torch.Tensor, ...]:
        return torch.randn(new), torch.randn(past), torch.randn(new + past)

    dims = dict.fromkeys(range(3), (0,))
    others = [args(4, 2), args(1, 9)]
    check(model, *args(1, 5), dynamic=dims, others=others, captures=("export",))
