"""Dicts by computed keys, and strings that a loop chooses, against eager."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import sardonyx
from tests.script import programs_keys as programs
from tests.script.running import assert_equal_to_eager, exported

CASES = [
    *programs.KEYS,
    *programs.FROM_DATA,
    *programs.COUNTED,
    *programs.CHOICES,
    *programs.STATES,
]
MESSAGES = {
    "returned_dict": "return the list of its keys",
    "text_that_grows": "programs_keys.py:",
    "returned_text": "return a number for each",
}


@pytest.mark.parametrize(("program", "inputs"), CASES, ids=[p.__name__ for p, _ in CASES])
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)


@pytest.mark.parametrize(
    ("program", "inputs"), programs.REFUSED, ids=[p.__name__ for p, _ in programs.REFUSED]
)
def test_refused_with_a_reason(program, inputs) -> None:
    with pytest.raises(sardonyx.CaptureError, match=MESSAGES[program.__name__]):
        exported(program, inputs)


def lists_of_several_sizes_by_key(x, n: int):
    groups: dict[int, list[Tensor]] = {}
    for i in range(n):
        groups[i] = [x[:j] for j in range(i)]
    return len(groups)


def test_values_without_a_form_are_refused_with_the_line() -> None:
    with pytest.raises(sardonyx.CaptureError, match=r"test_keys\.py:"):
        exported(lists_of_several_sizes_by_key, programs.SIZED)


def known_keys(x, n: int):
    groups: dict[int, list[int]] = {}
    for i in range(6):
        if i % 3 not in groups:
            groups[i % 3] = torch.jit.annotate(list[int], [])
        groups[i % 3].append(i + n)
    return x * len(groups), groups[2]


def test_a_loop_of_known_count_has_known_keys() -> None:
    assert_equal_to_eager(known_keys, programs.SIZED)


def given_with_computed_keys(x, n: int):
    return {n: x, 2: x * 2}[2]


def written_at_a_computed_key(x, n: int):
    weights: dict[int, Tensor] = {1: x}
    weights[n] = x * 2
    return weights[1]


@pytest.mark.parametrize("program", [given_with_computed_keys, written_at_a_computed_key])
def test_computed_and_known_keys(program) -> None:
    assert_equal_to_eager(program, programs.SIZED)


def values_of_several_ranks(x, n: int):
    found = {"a": x, "b": x.sum(0)}
    key = "a"
    for _ in range(n):
        key = "b" if key == "a" else "a"
    return found[key] * 2


def test_a_chosen_key_of_values_of_several_ranks() -> None:
    assert_equal_to_eager(values_of_several_ranks, programs.SIZED)
