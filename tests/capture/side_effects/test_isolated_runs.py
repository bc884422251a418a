"""What a model assigns while it is recorded: no other run of it sees that, nor does the caller."""

from __future__ import annotations

import copy

import onnxruntime
import pytest
import torch
from torch import nn

import sardonyx

CAPTURES = pytest.mark.parametrize("capture", ["trace", "export", "auto"])


class Slots(nn.Module):
    """Writes a slice whose bounds a tensor gives, and then assigns the buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("slots", torch.zeros(10, 3))
        self.register_buffer("at", torch.tensor(2))

    def forward(self, x):
        self.slots[self.at : self.at + x.shape[0]] = x
        self.slots = self.slots + 1
        return self.slots * 2


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.seen = []
        self.nested = {"a": {"n": 0}}

    def forward(self, x):
        self.count += 1
        self.seen.append(x.shape[0])
        self.nested["a"]["n"] += 1
        start = (x.abs().sum() * 0).long() + 1
        x[start : start + 2] += 1
        return x * (self.count + len(self.seen) + self.nested["a"]["n"])


class Cache:
    def __init__(self):
        self.items = []
        self.last = None

    def update(self, x):
        self.items.append(x)
        self.last = x
        return torch.cat(self.items)


class WithCache(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = Cache()

    def forward(self, x):
        return self.cache.update(x * 2)


@CAPTURES
@pytest.mark.parametrize("kind", [Slots, Counted, WithCache])
def test_every_run_starts_from_the_model_as_given(kind, capture):
    model = kind()
    program = sardonyx.export(
        model, (torch.randn(3, 3),), capture=capture, dynamic_axes={"x": {0: "n"}}
    )
    for size in (3, 1, 2, 7):
        x = torch.randn(size, 3)
        torch.testing.assert_close(program(x.clone()), copy.deepcopy(kind())(x.clone()))


@CAPTURES
def test_what_the_model_holds_is_as_before(capture):
    counted, cached = Counted(), WithCache()
    for model in (counted, cached):
        sardonyx.export(model, (torch.randn(1, 3),), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert (counted.count, counted.seen, counted.nested) == (0, [], {"a": {"n": 0}})
    assert cached.cache.items == [] and cached.cache.last is None


@CAPTURES
def test_a_buffer_that_is_written_and_assigned_is_an_output(capture):
    program = sardonyx.export(
        Slots(),
        (torch.randn(3, 3),),
        capture=capture,
        dynamic_axes={"x": {0: "n"}},
        state_outputs=True,
    )
    program.verify()
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    assert names == ["output", "slots.out"]
    for size in (3, 2, 5):
        x = torch.randn(size, 3)
        eager = Slots()
        expected = eager(x)
        output, slots = map(torch.from_numpy, session.run(None, {"x": x.numpy()}))
        torch.testing.assert_close(output, expected)
        torch.testing.assert_close(slots, eager.slots)


def given_up(x):
    try:
        return x.view(2, -1)
    except RuntimeError:
        return x.view(1, -1)


@CAPTURES
def test_a_call_that_failed_and_was_caught_decides(capture):
    x = torch.randn(3, 3)
    program = sardonyx.export(given_up, (x,), capture=capture, dynamic_axes={"x": {0: "n"}})
    (note,) = program.notes
    assert "the recording holds where Mod(3*n, 2) != 0: the model decides by it at" in note
    assert "x.view(2, -1)" in note
    assert program(torch.ones(5, 3)).shape == (1, 15)


def given_up_view(x):
    y = x.clone()
    try:
        y.view(3, 5, 7)
    except RuntimeError:
        y.mul_(2)
    return y


def given_up_write(x):
    y = x.clone()
    try:
        y[:, 0].add_(torch.ones(2, 7))
    except RuntimeError:
        y[:, 1].mul_(2)
    return y


@pytest.mark.parametrize("function", [given_up_view, given_up_write])
def test_a_call_that_failed_is_not_run_again(function):
    x = torch.randn(5, 4)
    program = sardonyx.export(function, (x,), capture="export", dynamic_axes={"x": {0: "n"}})
    for n in (5, 3, 8):
        x = torch.randn(n, 4)
        torch.testing.assert_close(program(x), function(x))
