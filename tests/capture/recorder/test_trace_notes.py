"""What tracing says that it bakes: all of it, and nothing else."""

from __future__ import annotations

import contextlib
import random
import warnings

import numpy as np
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
        lambda x: x * torch.as_tensor([x[0, 0], 1, 1, 1]),
        lambda x: x + torch.from_numpy(np.arange(4.0, dtype=np.float32)),
        lambda x: x * torch.tensor(2.5).item(),
        lambda x: x[: int(x.shape[0]) - 1] * float(len(x)),
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
        "tensor of values",
        "NumPy literal",
        "item of a literal",
        "fixed sizes",
    ],
)
def test_what_never_changes_is_not_said_to_be_baked(model):
    x = r(2, 4) if model is unpack_computed else r(3, 4)
    program = sardonyx.export(model, (x,), capture="trace", verify=True)
    assert program.notes == ()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda x: x * torch.tensor([float(x[0, 0])]), "a tensor becomes a Python float"),
        (lambda x: x + 1 if torch.allclose(x, x.abs()) else x, "allclose() of tensors becomes"),
        (lambda x: x + 1 if torch.equal(x, x.abs()) else x, "equal() of tensors becomes"),
        (lambda x: x + 1 if x.equal(x.abs()) else x, "equal() of tensors becomes"),
        (lambda x: x + 1 if torch.is_nonzero(x[0, 0]) else x, "is_nonzero() of tensors becomes"),
        (lambda x: x + 1 if x[0, 0].is_nonzero() else x, "is_nonzero() of tensors becomes"),
        (lambda x: x + 1 if torch.ops.aten.equal(x, x.abs()) else x, "becomes a Python bool"),
        (lambda x: F.pad(x, (1, 1), value=x[0, 0]), "becomes a Python number in pad()"),
        (lambda x: x[..., x[0, 0] > 0], "becomes a Python number in __getitem__()"),
        (lambda x: torch.from_dlpack(x) + 1, "leaves PyTorch by DLPack"),
    ],
    ids=[
        "float",
        "allclose",
        "equal",
        "equal method",
        "is_nonzero",
        "is_nonzero method",
        "aten",
        "pad",
        "mask",
        "dlpack",
    ],
)
def test_values_that_are_baked_are_told(model, reason):
    program = sardonyx.export(model, (r(3, 4),), capture="trace")
    assert any(reason in note for note in program.notes)
    assert all(len(note.split("   ")[0]) < 170 for note in program.notes)


@pytest.mark.parametrize("times", [1, 2])
def test_a_capsule_of_dlpack_is_refused(times):
    def model(x):
        return dlpack.from_dlpack(dlpack.to_dlpack(x * times)) + 1

    with pytest.raises(sardonyx.CaptureError, match=r"test_trace_notes\.py"):
        sardonyx.export(model, (r(3, 4),), capture="trace")


@pytest.mark.parametrize(
    "model",
    [
        lambda x: x * x.sum().item(),
        lambda x: x * torch.tensor(x.sum().item()),
        lambda x: x + sum(x[0].tolist()),
        lambda x: x[: x[0, 0].long().clamp(0, 2).item()],
    ],
    ids=["item", "tensor of an item", "tolist", "bound of a slice"],
)
def test_numbers_that_only_go_into_operators_are_not_baked(model):
    program = sardonyx.export(model, (r(3, 4),), capture="trace", verify=True)
    assert program.notes == ()
    x = torch.randn(3, 4) * 2
    torch.testing.assert_close(program(x), model(x))


def branch_on_equality(x):
    return x + 1 if torch.allclose(x, x.abs()) else x - 1


@pytest.mark.parametrize("model", [loop_over_selection, branch_on_equality])
def test_what_values_decide_is_not_taken_for_granted(model):
    with pytest.raises(sardonyx.SardonyxError):
        sardonyx.export(model, (torch.ones(3),), capture="export")
    program = sardonyx.export(model, (torch.ones(3),))
    for x in (torch.ones(3), torch.tensor([2.0, -1.0, 3.0]), -torch.ones(3)):
        torch.testing.assert_close(program(x), model(x))


def test_a_dim_that_is_unpacked_cannot_be_dynamic():
    with pytest.raises(DynamicDimError, match="q, k, v = x"):
        sardonyx.export(unpack, (r(3, 4),), capture="trace", dynamic_axes={"x": {0: "n"}})


X = torch.tensor([[3.0, -2.0], [0.5, 4.0]])


def three_reads(x):
    for i in range(2):
        x = x + int(x[i, 0])
    return x


READS = {
    "int": (lambda x: x * int(x.sum()), "a tensor becomes a Python int (5)"),
    "float": (lambda x: x * float(x.max()), "a tensor becomes a Python float (4)"),
    "bool": (lambda x: x * bool(x[0, 1] > 0), "a tensor decides a Python branch (False)"),
    "complex": (lambda x: x + complex(x[0, 0]).real, "complex number (3+0j)"),
    "if": (lambda x: x + 1 if x.sum() > 0 else x, "a tensor decides a Python branch (True)"),
    "and": (lambda x: x + (x.sum() > 0 and 2.0), "a tensor decides a Python branch (True)"),
    "numpy": (lambda x: x + torch.from_numpy(x[0].numpy() * 2), "a NumPy array ([3, -2])"),
    "np.array": (lambda x: x + np.array(x[0]).sum().item(), "a NumPy array ([3, -2])"),
    "np.asarray": (
        lambda x: x + torch.tensor(np.asarray(x)),
        "a NumPy array ([3, -2, 0.5, ...] of shape [2, 2])",
    ),
    "string": (lambda x: x + len(f"{x[0, 0]}"), "a tensor becomes a Python string ('3.0')"),
    "format": (lambda x: x + len(f"{x[0, 1]:.3f}"), "a Python string ('-2.000')"),
    "print": (lambda x: x + len(str(x[0])), "a Python string ('tensor([ 3., -2.])')"),
    "in a list": (lambda x: x + 1 if x[0, 0] in [1.0, 3.0] else x, "branch (False, True)"),
    "equal tuples": (lambda x: x + 1 if (x[0, 0],) == (x[1, 1],) else x, "branch (False)"),
    "index": (lambda x: [x, x + 1][(x[0, 0] > 0).long()], "a Python index (1)"),
    "range": (lambda x: sum(x * i for i in range(x[0, 0].long())), "a Python index (3)"),
    "max": (lambda x: x + max(x[0, 0], x[0, 1]), "a tensor decides a Python branch (False)"),
    "equal": (lambda x: x + 1 if torch.equal(x, x.abs()) else x, "a Python bool (False)"),
    "contains": (lambda x: x + 1 if 4.0 in x else x, "a Python number (True)"),
    "size of data": (lambda x: x + int(x[x > 0].shape[0]), "a tensor becomes a Python int (3)"),
    "several times": (three_reads, "a tensor becomes a Python int (3)"),
    "pad": (lambda x: F.pad(x, (1, 1), value=x[0, 0]), "a Python number in pad() (3)"),
}


@pytest.mark.parametrize("capture", ["trace", "auto"])
@pytest.mark.parametrize(("model", "told"), READS.values(), ids=READS)
def test_a_value_is_told_once_with_its_line(model, told, capture):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        try:
            program = sardonyx.export(model, (X,), capture=capture)
        except sardonyx.SardonyxError as refusal:
            assert capture == "auto"
            assert told in str(refusal)
        else:
            assert capture == "auto" or len(program.notes) == 1
            for note in program.notes:
                assert told in note
                assert "/test_trace_notes.py:" in note
    assert not [w for w in shown if issubclass(w.category, torch.jit.TracerWarning)]


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize(
    ("draw", "name"),
    [(np.random.rand, "numpy.random"), (random.random, "Python's random")],
)
def test_random_numbers_from_outside_of_pytorch_are_noted(capture, draw, name):
    program = sardonyx.export(lambda x: x + float(draw()), (r(3),), capture=capture)
    assert [note for note in program.notes if f"draws random numbers by {name}" in note]
    drawn_anew = sardonyx.export(lambda x: x + torch.rand(3), (r(3),), capture=capture)
    assert not drawn_anew.notes


def recovers(x):
    try:
        y = x.view(-1, 7)
    except RuntimeError:
        y = x * 2
    return y + 1


def ignores(x):
    with contextlib.suppress(RuntimeError):
        x.view(-1, 7)
    return x * 1


@pytest.mark.parametrize("capture", ["trace", "export", "auto"])
@pytest.mark.parametrize("model", [recovers, ignores])
def test_a_model_that_goes_on_after_a_failed_call_is_recorded(model, capture):
    program = sardonyx.export(model, (r(4, 3),), capture=capture, verify=True)
    assert program.notes == ()


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_that_a_call_fails_for_some_sizes_is_noted(capture):
    program = sardonyx.export(recovers, (r(4, 3),), capture=capture, dynamic_axes={"x": {0: "n"}})
    (note,) = program.notes
    assert "the recording holds where " in note
    assert "/test_trace_notes.py:" in note and "x.view(-1, 7)" in note
    for n in (1, 2, 4, 8):
        x = r(n, 3)
        torch.testing.assert_close(program(x), recovers(x))


@pytest.mark.parametrize("capture", ["trace", "export", "auto"])
def test_text_of_an_assertion_is_not_noted(capture):
    def model(x):
        torch._assert(
            x.dim() == 2,
            f"a matrix is expected, not {x} of {x.shape[0]} rows",
        )
        assert x.shape[1] == 2, f"two columns are expected, not {x}"
        return x + 1

    dynamic = {"x": {0: "rows"}}
    assert not sardonyx.export(model, (X,), capture=capture, dynamic_shapes=dynamic).notes


def test_len_of_a_tensor_follows_its_size():
    def model(x):
        kept = x[x > 0]
        return torch.zeros(len(kept), len(x)) + len(x) / 2

    program = sardonyx.export(model, (X,), dynamic_shapes={"x": {0: "rows"}})
    for rows in (X, torch.cat([X, X + 1, X]), X[:1]):
        torch.testing.assert_close(program(rows), model(rows))
