"""Writes of one of two tensors, and dicts that gain keys in a loop, against eager."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import sardonyx
from tests.script import programs_chosen as programs
from tests.script.programs_flow import COUNTS, SIZES, rows
from tests.script.running import assert_equal_to_eager, exported


@pytest.mark.parametrize(
    ("program", "inputs"),
    programs.CHOSEN,
    ids=[getattr(p, "__name__", type(p).__name__) for p, _ in programs.CHOSEN],
)
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)


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


def keys_counted(x):
    d: dict[str, Tensor] = {}
    for i in range(x.size(0)):
        d["n"] = x[i]
    return len(d)


def dict_returned(x):
    d: dict[str, Tensor] = {}
    for i in range(x.size(0)):
        d["n"] = x[i]
    return d


def row_at_computed_place_written(x, n: int):
    kept = [x[0] + 0, x[1] + 0]
    for i in range(n):
        row = kept[i % 2]
        row += i
    return kept[0], kept[1]


@pytest.mark.parametrize(
    ("program", "inputs", "message"),
    [
        (keys_counted, SIZES, "which keys a dict has depends on a loop"),
        (dict_returned, SIZES, "may or may not give the key 'n'"),
        (row_at_computed_place_written, COUNTS, "may share its memory"),
    ],
)
def test_refused(program, inputs, message) -> None:
    with pytest.raises(sardonyx.CaptureError, match=message):
        exported(program, inputs)
