"""Verification at a second input says whether a value that tracing baked matters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sardonyx
from sardonyx.errors import VerificationError

X = torch.tensor([[3.0, -2.0], [0.5, 4.0]])


def scaled_by_sum(x):
    n = int(x.sum())
    return x * n


MATTERS = {
    "int": (scaled_by_sum, "n = int(x.sum())", "5"),
    "float": (lambda x: x * float(x.sum()), "float(x.sum())", "5.5"),
    "branch": (lambda x: x + 1 if x[0, 0] > 2.9 else x, "if x[0, 0] > 2.9", "True"),
    "NumPy": (lambda x: x + torch.from_numpy(np.sort(x.numpy())), "x.numpy()", "of shape [2, 2]"),
    "size of data": (lambda x: x + int(x[x > 2.9].shape[0]), "int(x[x > 2.9].shape[0])", "2"),
}


@pytest.mark.parametrize(("model", "line", "value"), MATTERS.values(), ids=MATTERS)
def test_the_value_that_changed_is_the_likely_cause(model, line, value):
    with pytest.raises(VerificationError) as refusal:
        sardonyx.export(model, (X,), capture="trace", verify=True)
    (cause,) = [text for text in str(refusal.value).splitlines() if "likely cause" in text]
    assert "the baked value " in cause
    assert "/test_baked_values.py:" in cause
    assert f"{value} at " in cause
    assert line in cause
    assert "rtol" not in str(refusal.value)


@pytest.mark.parametrize(
    "model",
    [lambda x: x * x.sum().item(), lambda x: x + sum(x[0].tolist())],
    ids=["item", "list"],
)
def test_a_number_that_is_followed_is_right_at_the_second_input(model):
    program = sardonyx.export(model, (X,), capture="trace", verify=True)
    assert program.notes == ()
    for x in (X, X * 2 - 1):
        torch.testing.assert_close(program(x), model(x))


def test_a_value_that_is_the_same_is_no_cause():
    def model(x):
        if x.dtype.is_floating_point and x.abs().sum() > 0:
            x = x + 1
        n = float(x.mean())
        return x * n

    with pytest.raises(VerificationError) as refusal:
        sardonyx.export(model, (X,), capture="trace", verify=True)
    (cause,) = [text for text in str(refusal.value).splitlines() if "likely cause" in text]
    assert "n = float(x.mean())" in cause
    assert str(refusal.value).count("tracing bakes a value") == 2


def test_a_value_without_effect_is_reported_so():
    def model(x):
        print_like = f"{x[0, 0]:.3f}"
        return x + (1 if print_like else 2)

    program = sardonyx.export(model, (X,), capture="trace", verify=True)
    (finding,) = program.verification.baked
    assert "the baked value '3.000' at " in finding
    assert "is without effect at other values, where PyTorch reads another" in finding
    assert finding in program.report()
    assert "without effect" in str(program.verification)


@pytest.mark.parametrize(
    "x", [[3.0, -2, -0.5], [0.5, 0.5, -0.9], [0.1, 0.2, 0.3], [1, 2, 9]], ids=str
)
def test_inputs_are_sought_that_change_it(x):
    """The first draw reads what the example reads, or its mirror does."""

    def model(x):
        return x * 2 if x[0] > x[2] else x * 3

    def other(x):
        return x * 2 if x[2] > x[0] else x * 3

    for wrong in (model, other):
        with pytest.raises(VerificationError, match="likely cause"):
            sardonyx.export(wrong, (torch.tensor(x),), capture="trace", verify=True)


def test_a_value_that_never_changed_may_matter():
    def model(x):
        return x + 1 if x.abs().sum() > 0 else x - 1

    program = sardonyx.export(model, (X,), capture="trace", verify=True)
    (finding,) = program.verification.baked
    assert "is the same at all inputs tried, and may matter at others" in finding


def test_without_baked_values_nothing_is_said():
    program = sardonyx.export(lambda x: x + x.shape[0], (X,), capture="trace", verify=True)
    assert program.verification.baked == ()


def test_the_callers_own_input_shows_it_too():
    program = sardonyx.export(scaled_by_sum, (X,), capture="trace")
    with pytest.raises(VerificationError, match=r"the baked value 5 at .*what is read here is 38"):
        program.verify((X * 7,))
