"""Writes of one of two tensors, and dicts that gain keys in a loop, against eager."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
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


def choices_and_more(x, y):
    a = x + 0
    b = y + 0
    c = a if bool(a.sum() > 0) else b
    c += 1
    d = a if bool(b.sum() > 0) else b
    d *= 2
    e = a if bool(a[0].sum() > 0) else b
    e -= 3
    f = a if bool(b[0].sum() > 0) else b
    f += 4
    total = a.sin()
    total = total.cos() + b.tan()
    total = total.exp().log1p()
    return a, b, total


def used_after_the_last_write(x, y):
    a = x + 0
    b = y + 0
    c = a if bool(a.sum() > 0) else b
    c += 1
    a *= 2
    d = c.sin()
    b += 5
    return a, b, c, d


def kept_in_a_list(x, y):
    a = x + 0
    b = y + 0
    c = a if bool(a.sum() > 0) else b
    c += 1
    kept = [c, b]
    a *= 2
    return torch.stack(kept), a


@pytest.mark.parametrize("program", [choices_and_more, used_after_the_last_write, kept_in_a_list])
def test_choices_one_after_the_other(program) -> None:
    assert_equal_to_eager(program, programs.PAIRS)


def test_what_follows_the_last_write_is_read_once() -> None:
    made = exported(choices_and_more, programs.PAIRS)
    names = [node.op_type for node in _all_nodes(made.model_proto.graph)]
    assert [names.count(name) for name in ("Sin", "Cos", "Tan", "Exp")] == [1, 1, 1, 1]
    assert names.count("If") <= 8


def _all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _all_nodes(attribute.g)


def keys_counted(x):
    d: dict[str, Tensor] = {}
    for i in range(x.size(0)):
        d["n"] = x[i]
    return len(d)


def test_a_key_that_the_first_iteration_sets() -> None:
    assert_equal_to_eager(keys_counted, SIZES)


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
