"""Writes inside the branches and loops of scripted programs, against eager."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import sardonyx
from tests.capture.torchscript.control_flow.programs_flow import COUNTS, SIGNS
from tests.capture.torchscript.running import assert_equal_to_eager, assert_same, exported
from tests.capture.torchscript.writes import programs_writes as programs


@pytest.mark.parametrize(
    ("program", "inputs"),
    programs.WRITES,
    ids=[getattr(p, "__name__", type(p).__name__) for p, _ in programs.WRITES],
)
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (programs.Counter(), COUNTS),
        (programs.BufferInBranch(), SIGNS),
        (programs.BufferReplaced(), COUNTS),
    ],
)
def test_buffers_at_the_end_are_outputs(model, inputs) -> None:
    made = exported(model, inputs, state_outputs=True)
    for each in inputs:
        eager = copy.deepcopy(model)
        eager(*copy.deepcopy(each))
        state = _state_after(made, each)
        assert len(state) == len(list(eager.named_buffers()))
        for found, (name, buffer) in zip(state, eager.named_buffers(), strict=True):
            assert_same(found, buffer, name)


def _state_after(made: sardonyx.ONNXProgram, inputs: tuple[Any, ...]) -> list[torch.Tensor]:
    results = made._run(made.signature.flatten(copy.deepcopy(inputs), {}))
    return [results[name] for name in made.signature.state_outputs]


def written_input(x, n: int):
    for i in range(n):
        x[i % 3] += i
    return x.sum()


def test_inputs_at_the_end_are_outputs() -> None:
    made = exported(written_input, COUNTS, state_outputs=True)
    for x, n in COUNTS:
        expected = x.clone()
        written_input(expected, n)
        (found,) = _state_after(made, (x, n))
        assert_same(found, expected)
