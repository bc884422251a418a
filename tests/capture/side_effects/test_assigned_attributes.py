"""Attributes that `forward` assigns are told of, and are afterwards what they were."""

from __future__ import annotations

import pytest
import torch

import sardonyx


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return x * self.steps


class Caches(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Counts()
        self.cache: torch.Tensor | None = None
        self.history: list[torch.Tensor] = []
        self.last: dict[str, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.cache = x
        self.history.append(x)
        self.last["x"] = x
        self.made_here = x + 1
        return self.inner(x)


class Remembers(torch.nn.Module):
    """What is the same again is nothing to tell."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.rank = 2
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rank = x.dim()
        self.count += 1
        return self.linear(x) + self.count


CAPTURES = ["auto", "export", "trace"]


def _attribute_notes(program: sardonyx.ONNXProgram) -> list[str]:
    return [note for note in program.notes if "assigns to its attribute" in note]


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_number(capture: str) -> None:
    model = Counts()
    program = sardonyx.export(model, torch.ones(2, 3), capture=capture)
    (note,) = _attribute_notes(program)
    assert "assigns to its attribute steps at tests/" in note
    assert "/test_assigned_attributes.py:" in note
    assert "self.steps += 1" in note
    assert model.steps == 3
    assert torch.equal(program(torch.ones(2, 3)), torch.full((2, 3), 4.0))


@pytest.mark.parametrize("capture", CAPTURES)
def test_tensors_and_containers(capture: str) -> None:
    model = Caches()
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    program = sardonyx.export(model, torch.ones(2, 3), capture=capture, verify=True)
    told = {note.split()[6]: note for note in _attribute_notes(program)}
    assert told.keys() == {"cache", "history", "last", "made_here", "inner.steps"}
    assert "self.cache = x" in told["cache"]
    assert "self.history.append(x)" in told["history"]
    assert 'self.last["x"] = x' in told["last"]
    assert {name: dict(vars(module)) for name, module in model.named_modules()} == before
    assert model.history == [] and model.last == {}


@pytest.mark.parametrize("capture", CAPTURES)
def test_nothing_to_tell(capture: str) -> None:
    program = sardonyx.export(Remembers(), torch.ones(2, 3), capture=capture, verify=True)
    assert _attribute_notes(program) == []


def test_modules_of_pytorch() -> None:
    program = sardonyx.export(
        torch.nn.LSTM(3, 4), torch.ones(5, 2, 3), capture="trace", verify=True
    )
    assert program.notes == ()


def test_a_remembered_shape_fixes_no_size() -> None:
    class RemembersShape(torch.nn.Module):
        shape = torch.Size([1, 4])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.shape = x.shape
            return x + 1

    model, x = RemembersShape(), torch.ones(1, 4)
    model(x)
    program = sardonyx.export(model, (x,), input_names=["x"], dynamic_axes={"x": [1]})
    torch.testing.assert_close(program(torch.ones(1, 7)), torch.full((1, 7), 2.0))
