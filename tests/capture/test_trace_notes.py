"""What tracing says that it bakes: all of it, and nothing else."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils import dlpack

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
        lambda x: x + x.dim() * x.is_floating_point() + x.element_size() + x.stride(0) * x.is_cuda,
        lambda x: F.pad(x, (1, 1), value=torch.tensor(2.0)),
        lambda x: x[: x.shape[0] - 1].reshape(x.size(1), -1).expand(x.numel() // 3, -1),
        lambda x: x.sum().new_tensor(2.0) * x,
        lambda x: x[(x[0, 0] > 0).long()],
        lambda x: x.clone().fill_(x[0, 0]),
    ],
    ids=[
        "literal",
        "as_tensor",
        "scalar",
        "unpack",
        "unpack computed",
        "questions",
        "pad with a literal",
        "sizes",
        "new_tensor",
        "index",
        "fill",
    ],
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
        (lambda x: x + 1 if torch.allclose(x, x.abs()) else x, "allclose() of tensors becomes"),
        (lambda x: x + 1 if torch.equal(x, x.abs()) else x, "equal() of tensors becomes"),
        (lambda x: x + 1 if x.equal(x.abs()) else x, "equal() of tensors becomes"),
        (lambda x: x + 1 if torch.is_nonzero(x[0, 0]) else x, "is_nonzero() of tensors becomes"),
        (lambda x: x + 1 if x[0, 0].is_nonzero() else x, "is_nonzero() of tensors becomes"),
        (lambda x: x + 1 if torch.ops.aten.equal(x, x.abs()) else x, "becomes a Python bool"),
        (lambda x: F.pad(x, (1, 1), value=x[0, 0]), "becomes a Python number in pad()"),
        (lambda x: x[..., x[0, 0] > 0], "becomes a Python number in __getitem__()"),
        (lambda x: torch.from_dlpack(x) + 1, "leaves PyTorch by DLPack"),
        (lambda x: dlpack.from_dlpack(dlpack.to_dlpack(x)) + 1, "from outside of PyTorch"),
        (lambda x: F.relu(dlpack.from_dlpack(dlpack.to_dlpack(x * 2))), "from outside of PyTorch"),
    ],
    ids=[
        "item",
        "float",
        "as_tensor",
        "allclose",
        "equal",
        "equal method",
        "is_nonzero",
        "is_nonzero method",
        "aten",
        "pad",
        "mask",
        "dlpack",
        "capsule",
        "computed capsule",
    ],
)
def test_values_that_are_baked_are_told(model, reason):
    program = sardonyx.export(model, (r(3, 4),), capture="trace")
    assert any(reason in note for note in program.notes)
    assert all(len(note.split("   ")[0]) < 120 for note in program.notes)


def test_a_loop_over_as_many_values_as_there_are_is_not_recorded():
    with pytest.raises(sardonyx.SardonyxError):
        sardonyx.export(loop_over_selection, (torch.ones(3),), capture="auto")


def test_a_branch_on_equality_is_not_taken_for_granted():
    def model(x):
        return x + 1 if torch.allclose(x, x.abs()) else x - 1

    with pytest.raises(sardonyx.SardonyxError):
        sardonyx.export(model, (torch.tensor([1.0, -2.0]),), capture="auto")


def test_a_dim_that_is_unpacked_cannot_be_dynamic():
    with pytest.raises(DynamicDimError, match="q, k, v = x"):
        sardonyx.export(unpack, (r(3, 4),), capture="trace", dynamic_axes={"x": {0: "n"}})
