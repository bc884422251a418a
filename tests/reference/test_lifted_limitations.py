"""What the reference says does not work: what its exporter makes of it to this day, and what comes
out here. test_indexing_patterns.py has the patterns of indexing."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from tests.reference.documented_exporter import documented_export, outputs_of
from tests.reference.test_custom_operators import SeveralUnconvertible
from tests.reference.test_tracing_and_scripting import (
    Joined,
    Model,
    ReshapedByItem,
    doubled_or_lowered,
    written_through_data,
)


def test_a_branch_that_depends_on_data():
    """'the exported model will not capture this dynamic behavior': not in silence here."""
    x, other = torch.ones(3), torch.full((3,), -3.0)
    (found,) = outputs_of(documented_export(doubled_or_lowered, (x,)), other)
    assert not torch.equal(found, doubled_or_lowered(other))
    with pytest.raises(sardonyx.CaptureError):
        sardonyx.export(doubled_or_lowered, x)
    program = sardonyx.export(torch.jit.script(doubled_or_lowered), x)
    assert torch.equal(program(other), doubled_or_lowered(other))


def test_numpy_arrays():
    """'any variables of NumPy or Python types ... are converted to constants'."""
    args = (torch.randn(1, 2), torch.randn(1, 2))
    assert documented_export(Joined(), args).get_inputs() == [], "a constant"
    program = sardonyx.export(Joined(), args)
    other = (torch.randn(1, 2), torch.randn(1, 2))
    assert torch.equal(program(*other), torch.cat(other, 1))


def test_items():
    """'y.item() will be replaced with a constant during tracing'."""
    args = (torch.randn(12), torch.tensor(3))
    session = documented_export(ReshapedByItem(), args)
    assert len(session.get_inputs()) == 1, "y is no input"
    program = sardonyx.export(ReshapedByItem(), args)
    assert program(torch.randn(12), torch.tensor(4)).shape == (4, 3)


def test_tensor_data():
    """'Using the Tensor.data field can produce an incorrect trace'."""
    x = torch.ones(2)
    (found,) = outputs_of(documented_export(written_through_data, (x,)), x)
    assert not torch.equal(found, written_through_data(x))
    assert torch.equal(sardonyx.export(written_through_data, x)(x), written_through_data(x))


def test_sizes_in_place():
    """'This might cause a mismatch the final output values.'"""
    options = {"input_names": ["states"], "dynamic_axes": {"states": [0, 1]}}
    session = documented_export(Model(), (torch.randn(2, 5),), **options)
    assert outputs_of(session, torch.randn(3, 7))[0].item() == 7 + 2 + 7 + 2
    program = sardonyx.export(Model(), (torch.randn(2, 5),), **options)
    assert program(torch.randn(3, 7)).item() == 7 + 2 + 7


def test_keys_of_dicts():
    """'silently replaced with a flattened sequence of its values (keys will be removed)'."""

    def model(x):
        return {"foo": x + 1, "bar": x + 2}

    session = documented_export(model, (torch.zeros(2),))
    assert not {"foo", "bar"} & {output.name for output in session.get_outputs()}
    program = sardonyx.export(model, torch.zeros(2))
    assert [output.name for output in program.model.graph.outputs] == ["foo", "bar"]


def test_tuples_in_lists():
    """'appending a tuple to a list is not supported'."""

    def model(x, n: int):
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        for i in range(n):
            pairs.append((x + i, x * i))
        return pairs[0][0] + pairs[-1][1]

    scripted = torch.jit.script(model)
    with pytest.raises(RuntimeError, match="tuples"):
        documented_export(scripted, (torch.ones(3), 2))
    program = sardonyx.export(scripted, (torch.ones(3), 2))
    assert torch.equal(program(torch.ones(3), 5), model(torch.ones(3), 5))


def test_strings():
    """'the exporter does not support models with str inputs'."""

    def model(x, mode: str):
        if mode == "relu":
            return torch.relu(x)
        return torch.sigmoid(x)

    scripted = torch.jit.script(model)
    with pytest.raises(ValueError, match="args contained 1 None"):
        documented_export(scripted, (torch.ones(3), "relu"))
    sardonyx.export(scripted, (torch.randn(3), "relu"), verify=True)


def test_all_unconvertible_operators():
    """'there may in fact be more than one such op but the error message only mentions the first'"""
    args = (torch.randn(2), torch.randn(2))
    with pytest.raises(RuntimeError, match="custom_ops::foo") as theirs:
        documented_export(SeveralUnconvertible(), args)
    assert "foo_forward" not in str(theirs.value)
    with pytest.raises(RuntimeError, match="custom_ops::foo_forward"):
        sardonyx.export(SeveralUnconvertible(), args)
