"""Dicts in a loop, and shapes changed under another name, against eager."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import sardonyx
from tests.capture.torchscript.control_flow.programs_flow import COUNTS, SIZES, rows
from tests.capture.torchscript.running import assert_equal_to_eager, exported


def sum_of_rows(x, mask):
    total = torch.zeros(2)
    for i in range(x.size(0)):
        if bool(mask[i]):
            continue
        total += x[i]
    return total


def test_what_is_only_read_is_not_said_to_be_written() -> None:
    inputs = [(rows(4), torch.arange(4) > 1), (rows(0), torch.arange(0) > 1)]
    made = assert_equal_to_eager(sum_of_rows, inputs)
    assert not any("writes" in note for note in made.notes)


def keys_set_before(x):
    d: dict[str, Tensor] = {"n": torch.zeros(2)}
    for i in range(x.size(0)):
        d["n"] = d["n"] + x[i]
    return d["n"], len(d)


def test_a_key_that_is_set_before_the_loop() -> None:
    assert_equal_to_eager(keys_set_before, SIZES)


def dict_returned(x):
    d: dict[str, Tensor] = {}
    for i in range(x.size(0)):
        d["n"] = x[i]
    return d


def carried_under_another_name(x, n: int):
    y = x.clone()
    w = y
    for _ in range(2):
        if n > 1:
            w = y.sum(0)
        y.unsqueeze_(0)
    return w


def chosen_under_another_name(x, n: int):
    y = x.clone()
    w = y
    if n > 1:
        w = y + 1
    y.unsqueeze_(0)
    return w


def given_back_by_a_loop(x, n: int):
    y = x.clone()
    z = y
    for _ in range(n):
        z = y.contiguous()
        y.unsqueeze_(0)
    return z


@pytest.mark.parametrize(
    ("program", "inputs", "message"),
    [
        (carried_under_another_name, COUNTS, "another variable may hold too"),
        (chosen_under_another_name, COUNTS, "another variable may hold too"),
        (given_back_by_a_loop, COUNTS, "another variable may hold too"),
        (dict_returned, SIZES, "a dict with the keys"),
    ],
)
def test_refused(program, inputs, message) -> None:
    with pytest.raises(sardonyx.CaptureError, match=message):
        exported(program, inputs)
