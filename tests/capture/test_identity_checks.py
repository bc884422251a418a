"""Models that ask what a number made of sizes is: `c is True`, `type(n) is int`."""

from __future__ import annotations

import builtins
from numbers import Integral

import pytest
import torch

import sardonyx
from sardonyx.errors import DynamicDimError

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


def _is_larger(n):
    return n > 2


def of_a_function(x):
    return x * 2 if _is_larger(len(x)) is True else x - 1


def of_a_type(x):
    return x * 2 if type(x.shape[0]) is int else x - 1


def of_types(x):
    n = x.shape[0]
    assert isinstance(type(x), type)
    assert type(x) == torch.Tensor  # noqa: E721
    half = n / 2
    return x * (n + half if type(n) in (int, bool) and type(half) is float else 0.0)


def _pair(size):
    return (size, size) if type(size) is int else size


class OfAModule(torch.nn.Module):
    def forward(self, x):
        return x.new_ones(_pair(x.shape[0])) @ x


class OfAHelper(torch.nn.Module):
    def forward(self, x):
        return agreement_of(x)


def agreement_of(x):
    n = x.shape[0]
    assert isinstance(n, (int, float)) and not isinstance(n, bool)
    assert isinstance(n, Integral)
    return x * 2 if isinstance(n, int) and isinstance(n * 0.5, float) else x


BRANCHES = [is_true, is_not_false, true_is, matched, of_a_function]
TYPES = {
    "type": of_a_type,
    "types": of_types,
    "type in a module": OfAModule(),
    "isinstance": agreement_of,
    "type of a tensor": lambda x: x * 2 if type(x) is torch.Tensor else x,
    "len": lambda x: x / len(x),
    "isinstance in a module": OfAHelper(),
}
FOLLOWED = {
    "type": of_a_type,
    "types": of_types,
    "type in a module": OfAModule(),
    "isinstance": lambda x: x * 2 if isinstance(x.shape[0] > 2, bool) else x,
    "sum of answers": lambda x: x * ((x.shape[0] > 1) + (x.shape[0] > 2)),
    "sum of a list": lambda x: x * sum([x.shape[0] > 1, x.shape[0] > 2, x.shape[0] > 5]),
    "answer taken from a size": lambda x: x * (x.shape[0] - (x.shape[0] > 1)),
    "inverted": lambda x: x * ~(x.shape[0] > 2),
    "and": lambda x: x * ((x.shape[0] > 2) & (x.shape[0] < 5)),
    "and of a tensor": lambda x: (x > 0) & (x.shape[0] > 2),
    "full": lambda x: torch.full((2,), x.shape[0] > 2),
    "masked_fill": lambda x: x.masked_fill(x > 0, x.shape[0] > 2),
    "tensor": lambda x: torch.tensor([x.shape[0] > 2, True]),
}


@pytest.mark.parametrize("model", BRANCHES)
def test_where_sizes_are_fixed_the_branch_is_that_of_eager(model):
    program = sardonyx.export(model, (X,), capture="trace", verify=True)
    assert program.notes == ()


@pytest.mark.parametrize("model", BRANCHES)
def test_where_a_size_is_dynamic_the_branch_is_told(model):
    try:
        program = sardonyx.export(model, (X,), capture="trace", dynamic_axes={"x": {0: "n"}})
    except DynamicDimError as refusal:
        told = str(refusal)
    else:
        told = "\n".join(program.notes)
        torch.testing.assert_close(program(X), model(X))
    assert "a tensor decides a Python branch (True)" in told


@pytest.mark.parametrize("model", BRANCHES)
def test_an_export_takes_the_branch_of_eager_and_tells_its_condition(model):
    try:
        program = sardonyx.export(model, (X,), capture="export", dynamic_axes={"x": {0: "n"}})
    except DynamicDimError as refusal:
        assert model is true_is  # n == 3
        assert "test_identity_checks.py:" in str(refusal)
    else:
        (note,) = program.notes
        assert "the recording holds where n >" in note or "n >= 3" in note
        for size in (3, 4, 7):
            x = torch.randn(size, 4)
            torch.testing.assert_close(program(x), model(x))


@pytest.mark.parametrize("model", FOLLOWED.values(), ids=FOLLOWED)
def test_what_python_computes_of_answers_is_followed(model):
    program = sardonyx.export(model, (X,), capture="trace", dynamic_axes={"x": {0: "n"}})
    assert program.notes == ()
    for size in (1, 2, 3, 4, 7):
        x = torch.randn(size, 4)
        torch.testing.assert_close(program(x), model(x))


@pytest.mark.parametrize("capture", ["trace", "export", "auto"])
@pytest.mark.parametrize("model", TYPES.values(), ids=TYPES)
def test_a_dynamic_size_is_the_number_it_is_in_eager_pytorch(model, capture):
    program = sardonyx.export(model, (X,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert program.notes == ()
    for size in (1, 2, 3, 4, 7):
        x = torch.randn(size, 4)
        torch.testing.assert_close(program(x), model(x))
    assert isinstance is builtins.isinstance
    assert type is builtins.type


def test_an_answer_may_be_a_result():
    program = sardonyx.export(
        lambda x: (x, x.shape[0] > 2), (X,), capture="trace", dynamic_axes={"x": {0: "n"}}
    )
    assert program.notes == ()
    assert [bool(program(torch.randn(size, 4))[1]) for size in (1, 3)] == [False, True]


def by_identity(x):
    def is_same(left, right):
        return left is right

    return x * 2 if is_same(x.shape[0] > 2, bool(1)) else x - 1


def test_an_answer_that_no_call_reads_is_told():
    program = sardonyx.export(by_identity, (X,), capture="trace", dynamic_axes={"x": {0: "n"}})
    (note,) = program.notes
    assert "a comparison of sizes is in no call" in note
    assert "x.shape[0] > 2" in note


def test_fixed_sizes_are_numbers_of_python():
    program = sardonyx.export(by_identity, (X,), capture="trace")
    assert program.notes == ()
    torch.testing.assert_close(program(X), by_identity(X))


def test_type_is_put_back():
    sardonyx.export(of_types, (X,), capture="trace")
    assert "type" not in globals()
    assert type is builtins.type
