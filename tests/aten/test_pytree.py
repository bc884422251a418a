"""Caches like those of Transformers, which is not among the test dependencies."""

from __future__ import annotations

import copy
import sys
import types
from typing import Any

import pytest
import torch
from torch import nn

import sardonyx
from sardonyx.aten import pytree
from sardonyx.errors import CaptureError, InvalidOptionError


class Cache:
    def __init__(self, *layers: Any) -> None:
        self.layers = list(layers)


class WindowLayer:
    """Keeps the last tokens, and counts all."""

    def __init__(self, window: int) -> None:
        self.keys: Any = None
        self.window = window
        self.cumulative_length = 0
        self._window_tensor = torch.tensor(window)

    def update(self, keys: torch.Tensor) -> torch.Tensor:
        self.cumulative_length += keys.shape[1]
        full = keys if self.keys is None else torch.cat([self.keys, keys], 1)
        self.keys = full[:, -self.window :]
        return full


class StateLayer:
    """Recurrent: states by number, written in place, with flags beside them."""

    def __init__(self, states: int = 1) -> None:
        self.states: dict[int, Any] = dict.fromkeys(range(states))
        self.is_filled = dict.fromkeys(range(states), False)
        self.calls = {"update": 0}

    def update(self, x: torch.Tensor) -> torch.Tensor:
        self.calls["update"] += x.shape[1]
        if not self.is_filled[0]:
            self.states[0] = torch.zeros_like(x[:, 0])
            self.is_filled[0] = True
        self.states[0].copy_(self.states[0] * 0.5 + x.sum(1))
        return self.states[0]


class Model(nn.Module):
    def forward(self, x: torch.Tensor, past: Cache | None = None) -> dict[str, Any]:
        past = Cache(WindowLayer(3), StateLayer()) if past is None else past
        window, state = past.layers
        return {"y": window.update(x).sum(1) + state.update(x), "past": past}


@pytest.fixture(autouse=True)
def transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    library = types.ModuleType("transformers.cache_utils")
    library.Cache = Cache  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers.cache_utils", library)


def assert_same(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    found, structure = pytree.flatten(actual)
    wanted, as_wanted = pytree.flatten(expected)
    assert structure == as_wanted
    for got, want in zip(found, wanted, strict=True):
        torch.testing.assert_close(got, torch.as_tensor(want))
    window, state = actual["past"].layers
    assert (type(window), type(state)) == (WindowLayer, StateLayer)
    assert type(window._window_tensor) is torch.Tensor and int(window._window_tensor) == 3
    assert state.is_filled == {0: True}


def test_a_cache_goes_out_and_comes_in_again() -> None:
    sequence = {0: "batch", 1: "sequence"}
    first = sardonyx.export(Model(), (torch.randn(2, 4, 3),), dynamic_shapes=(sequence,))
    example = Model()(torch.randn(2, 5, 3))["past"]
    before = copy.deepcopy(pytree.flatten(example)[0])
    held = [{"key": {0: "batch"}}, {"states": [{0: "batch"}]}]
    then = sardonyx.export(
        Model(), (torch.randn(2, 4, 3), example), dynamic_shapes=(sequence, held)
    )
    torch.testing.assert_close(pytree.flatten(example)[0], before)
    assert [value.name for value in then.model.graph.inputs] == [
        "x", "past.0.key", "past.0.cumulative_length", "past.1.states.0", "past.1.calls.update"
    ]  # fmt: skip
    prompt, more = torch.randn(3, 6, 3), torch.randn(3, 1, 3)
    given, expected = first(prompt), Model()(prompt)
    assert_same(given, expected)
    assert_same(then(more, given["past"]), Model()(more, expected["past"]))


def test_a_cache_with_other_settings_is_refused() -> None:
    x, example = torch.randn(2, 4, 3), Model()(torch.randn(2, 5, 3))["past"]
    program = sardonyx.export(Model(), (x, example))
    other = Cache(WindowLayer(4), StateLayer())
    Model()(torch.randn(2, 5, 3), other)
    other.layers[0].keys = other.layers[0].keys[:, 1:]
    with pytest.raises(InvalidOptionError, match="structure"):
        program(x, other)


def test_tensors_in_an_object_of_a_layer_are_refused() -> None:
    layer = WindowLayer(3)
    layer.keys = nn.Linear(2, 2)
    layer.keys.held = torch.ones(2)
    with pytest.raises(CaptureError, match="'keys' of a WindowLayer is a Linear that holds"):
        pytree.flatten(Cache(layer))
