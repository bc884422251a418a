"""What a model holds is restored, whatever that is, and at a cost that has a bound."""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from typing import NamedTuple

import pytest
import torch
from torch import nn

import sardonyx
from sardonyx.capture.side_effects.python_state import attributes_restored
from tests.cost import function_calls


class Raising:
    @property
    def __dict__(self):
        raise RuntimeError("no attributes")


class Unbound:
    def __getattribute__(self, name):
        raise RuntimeError(f"{name} of nothing")


class NoAttributes:
    __dict__ = None


class OfUnhashableKind(type):
    def __eq__(cls, other):
        return cls is other


class Unhashable(metaclass=OfUnhashableKind):
    pass


class Trainer:
    __module__ = None

    def __init__(self, model):
        self.model, self.itself, self.weak = model, self, weakref.ref(model)
        self.lock, self.steps = threading.Lock(), 0


class Counting(nn.Module):
    def __init__(self, held=None):
        super().__init__()
        self.held = None
        self.__dict__["held"] = held  # past the questions that setattr() asks
        self.seen = []

    def forward(self, x):
        self.seen.append(x)
        return x * len(self.seen)


@pytest.mark.parametrize(
    "held", [Raising, NoAttributes, Unhashable, threading.Lock], ids=lambda k: k.__name__
)
@pytest.mark.parametrize("capture", ["trace", "export"])
def test_objects_that_cannot_be_looked_into(held, capture):
    model = Counting(held())
    program = sardonyx.export(model, (torch.ones(2),), capture=capture)
    assert torch.equal(program(torch.ones(2)), torch.ones(2)) and model.seen == []


def test_objects_that_raise_at_every_question():
    model = Counting(Unbound())
    with attributes_restored(model):
        model.seen.append(1)
    assert model.seen == []


def test_objects_that_hold_the_model():
    model = Counting()
    model.trainer = Trainer(model)
    with attributes_restored(model):
        model.trainer.steps += 1
        model.seen.append(1)
    assert model.trainer.steps == 0 and model.seen == []


def test_modules_that_are_not_registered_and_counters():
    model, hidden = Counting(), Counting()
    model.__dict__["held"] = ([hidden], Counter(a=1))
    with attributes_restored(model):
        hidden.cache = torch.ones(1)
        hidden.seen.append(1)
        model.held[1].update("ab")
    assert not hasattr(hidden, "cache") and hidden.seen == [] and model.held[1] == Counter(a=1)


def test_keys_that_have_no_plain_equality():
    one, other = torch.ones(2), torch.ones(2)
    model = Counting({one: 1, other: 2})
    with attributes_restored(model):
        model.held[one] = model.held.pop(one)
    assert list(model.held.values()) == [1, 2]


def _shared_tuples():
    held = ()
    for _ in range(40):
        held = (held, held)
    return held


@pytest.mark.parametrize(
    "held",
    [
        lambda: [{"label": [i]} for i in range(500_000)],
        lambda: {i: str(i) for i in range(500_000)},
        _shared_tuples,
    ],
    ids=["dataset", "vocabulary", "shared tuples"],
)
def test_the_cost_has_a_bound(held):
    model = Counting(held())

    def restored():
        with attributes_restored(model):
            model.seen.append(1)

    assert function_calls(restored) < 50_000
    assert model.seen == []


def test_the_nearest_are_restored_first():
    parts = nn.ModuleList(Counting([[i] for i in range(2_000)]) for _ in range(60))
    with attributes_restored(parts):
        for part in parts:
            part.seen.append(1)
    assert all(part.seen == [] for part in parts)


class Items(list):
    def extend(self, items):
        raise AssertionError("not of the model's own accord")


class Entries(dict):
    pass


class Pair(NamedTuple):
    seen: list
    entries: Entries


@pytest.mark.parametrize("capture", ["trace", "export", "auto"])
def test_kinds_of_lists_dicts_and_tuples(capture):
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.items, self.pair = Items([0]), Pair([], Entries(a=1))

        def forward(self, x):
            self.items.append(1)
            self.pair.seen.append(1)
            self.pair.entries[len(self.pair.entries)] = 1
            start = (x.abs().sum() * 0).long() + 1
            x = x.clone()
            x[start : start + 2] += 1  # takes torch.export two attempts
            return x * (len(self.items) + len(self.pair.seen) + len(self.pair.entries))

    model, x = Steps(), torch.randn(4)
    program = sardonyx.export(model, (x,), capture=capture, dynamic_axes={"x": {0: "n"}})
    assert (model.items, model.pair) == ([0], ([], {"a": 1}))
    torch.testing.assert_close(program(x), Steps()(x))
