"""What tracing says that it bakes: all of it, and nothing else."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.errors import DynamicDimError

r = torch.randn


def unpack(x):
    q, k, v = x
    return q + k * v


def unpack_computed(x):
    left, right = x.reshape(2, -1)
    return left - right


def loop_over_selection(x):
    total = x.sum()
    for value in x[x > 0]:
        total = total * value
    return total


@pytest.mark.parametrize(
    "model",
    [
        lambda x: x[torch.tensor([0, 0, 1])],
        lambda x: x + torch.as_tensor([1.0, 2.0, 3.0, 4.0]),
        lambda x: x * torch.tensor(2.0),
        unpack,
        unpack_computed,
    ],
    ids=["literal", "as_tensor", "scalar", "unpack", "unpack computed"],
)
def test_what_never_changes_is_not_said_to_be_baked(model):
    x = r(2, 4) if model is unpack_computed else r(3, 4)
    program = sardonyx.export(model, (x,), capture="trace", verify=True)
    assert program.notes == ()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda x: x * torch.tensor(x.sum().item()), "a tensor becomes a Python number"),
        (lambda x: x * torch.tensor([float(x[0, 0])]), "a tensor becomes a Python float"),
        (lambda x: x * torch.as_tensor([x[0, 0], 1, 1, 1]), "made of Python values is a constant"),
    ],
    ids=["item", "float", "as_tensor"],
)
def test_values_that_are_baked_are_told(model, reason):
    program = sardonyx.export(model, (r(3, 4),), capture="trace")
    assert any(reason in note for note in program.notes)
    assert all(len(note.split("   ")[0]) < 120 for note in program.notes)


def test_a_loop_over_as_many_values_as_there_are_is_not_recorded():
    with pytest.raises(sardonyx.SardonyxError):
        sardonyx.export(loop_over_selection, (torch.ones(3),), capture="auto")


def test_a_dim_that_is_unpacked_cannot_be_dynamic():
    with pytest.raises(DynamicDimError, match="q, k, v = x"):
        sardonyx.export(unpack, (r(3, 4),), capture="trace", dynamic_axes={"x": {0: "n"}})
