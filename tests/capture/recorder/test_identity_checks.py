"""Models that ask what a number made of sizes is: `c is True`, `isinstance(n, int)`."""

from __future__ import annotations

from numbers import Integral

import pytest
import torch

import sardonyx
from sardonyx.errors import CaptureError

X = torch.randn(3, 4)


def is_true(x):
    return x * 2 if (x.shape[0] > 2) is True else x - 1


def is_not_false(x):
    c = x.shape[0] > 2
    return x * 2 if c is not False else x - 1


def true_is(x):
    c = x.shape[0] == x.shape[1] - 1
    return x * 2 if True is c else x - 1


def matched(x):
    match x.shape[0] > 2:
        case True:
            return x + 1
        case _:
            return x - 1


def by_identity(x):
    def is_same(left, right):
        return left is right

    return x * 2 if is_same(x.shape[0] > 2, bool(1)) else x - 1


class OfAHelper(torch.nn.Module):
    def forward(self, x):
        return agreement_of(x)


def agreement_of(x):
    n = x.shape[0]
    assert isinstance(n, (int, float)) and not isinstance(n, bool)
    assert isinstance(n, Integral)
    return x * 2 if isinstance(n, int) and isinstance(n * 0.5, float) else x


BY_IDENTITY = {
    is_true: "(x.shape[0] > 2) is True",
    is_not_false: "c = x.shape[0] > 2",
    true_is: "c = x.shape[0] == x.shape[1] - 1",
    matched: "match x.shape[0] > 2:",
    by_identity: "is_same(x.shape[0] > 2, bool(1))",
}
OF_A_CLASS = {
    "isinstance": agreement_of,
    "isinstance in a module": OfAHelper(),
    "isinstance of an answer": lambda x: x * 2 if isinstance(x.shape[0] > 2, bool) else x,
    "len": lambda x: x / len(x),
}
FOLLOWED = {
    "and": lambda x: x * ((x.shape[0] > 2) & (x.shape[0] < 5)),
    "and of a tensor": lambda x: (x > 0) & (x.shape[0] > 2),
    "full": lambda x: torch.full((2,), x.shape[0] > 2),
    "masked_fill": lambda x: x.masked_fill(x > 0, x.shape[0] > 2),
    "tensor": lambda x: torch.tensor([x.shape[0] > 2, True]),
}
MADE_A_NUMBER = {
    "sum of answers": (lambda x: x * ((x.shape[0] > 1) + (x.shape[0] > 2)), ("n > 1", "n > 2")),
    "sum of a list": (
        lambda x: x * sum([x.shape[0] > 1, x.shape[0] > 2, x.shape[0] > 5]),
        ("n > 1", "n > 2", "n <= 5"),
    ),
    "answer taken from a size": (lambda x: x * (x.shape[0] - (x.shape[0] > 1)), ("n > 1",)),
}
RECORDINGS = pytest.mark.parametrize("capture", ["trace", "export"])


@RECORDINGS
@pytest.mark.parametrize("model", BY_IDENTITY)
def test_where_sizes_are_fixed_the_branch_is_that_of_eager(model, capture):
    program = sardonyx.export(model, (X,), capture=capture, verify=True)
    assert program.notes == ()


@RECORDINGS
@pytest.mark.parametrize(
    ("model", "line"), BY_IDENTITY.items(), ids=[model.__name__ for model in BY_IDENTITY]
)
def test_an_answer_that_is_looked_at_by_identity_is_refused_with_the_line(model, line, capture):
    with pytest.raises(CaptureError, match="unless it is compared by `is`") as refusal:
        sardonyx.export(model, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert "test_identity_checks.py:" in str(refusal.value)
    assert line in str(refusal.value)


@RECORDINGS
@pytest.mark.parametrize("model", FOLLOWED.values(), ids=FOLLOWED)
def test_an_answer_that_operators_take_is_followed(model, capture):
    program = sardonyx.export(model, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert program.notes == ()
    for size in (1, 2, 3, 4, 7):
        x = torch.randn(size, 4)
        torch.testing.assert_close(program(x), model(x))


@RECORDINGS
@pytest.mark.parametrize(("model", "conditions"), MADE_A_NUMBER.values(), ids=MADE_A_NUMBER)
def test_an_answer_that_python_computes_with_is_noted(model, conditions, capture):
    program = sardonyx.export(model, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert len(program.notes) == len(conditions)
    for condition in conditions:
        (note,) = [note for note in program.notes if f"holds where {condition}: " in note]
        assert "test_identity_checks.py:" in note
    for size in (3, 4, 5):
        x = torch.randn(size, 4)
        torch.testing.assert_close(program(x), model(x))


@RECORDINGS
def test_an_answer_that_is_inverted_bit_by_bit_is_refused_with_the_line(capture):
    with pytest.raises(CaptureError, match=r"~\(x\.shape\[0\] > 2\)"):
        sardonyx.export(
            lambda x: x * ~(x.shape[0] > 2), (X,), capture=capture, dynamic_axes={"x": {0: "n"}}
        )


@pytest.mark.parametrize("capture", ["trace", "export", "auto"])
@pytest.mark.parametrize("model", OF_A_CLASS.values(), ids=OF_A_CLASS)
def test_a_dynamic_size_is_the_number_it_is_in_eager_pytorch(model, capture):
    program = sardonyx.export(model, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert program.notes == ()
    for size in (1, 2, 3, 4, 7):
        x = torch.randn(size, 4)
        torch.testing.assert_close(program(x), model(x))


def test_an_answer_may_be_a_result():
    program = sardonyx.export(
        lambda x: (x, x.shape[0] > 2), (X,), capture="trace", dynamic_axes={"x": {0: "n"}}
    )
    assert program.notes == ()
    assert [bool(program(torch.randn(size, 4))[1]) for size in (1, 3)] == [False, True]


def test_nothing_is_put_into_the_users_module():
    before = set(globals()), len, isinstance, type
    seen = []

    def model(x):
        seen.append((set(globals()), len, isinstance, type))
        return x * 2

    sardonyx.export(model, (X,), capture="trace", dynamic_axes={"x": {0: "n"}})
    assert seen == [before] * len(seen)
    assert (set(globals()), len, isinstance, type) == before
