"""Lists of tuples of dynamic length, against eager."""

from __future__ import annotations

import pytest
import torch

from tests.capture.torchscript.containers import programs_rows as programs
from tests.capture.torchscript.running import assert_equal_to_eager

CASES = [*programs.LISTS, *programs.DETECTED, *programs.DECODED]


@pytest.mark.parametrize(("program", "inputs"), CASES, ids=[p.__name__ for p, _ in CASES])
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)


def dicts_of_known_count(x):
    kept = [{"a": x}]
    for i in range(2):
        kept.append({"a": x + i})
    kept[0]["a"] = x * 5
    for entry in kept:
        entry["a"] = entry["a"] + 1
    return torch.stack([entry["a"] for entry in kept])


def groups_of_known_count(x):
    groups: dict[int, list[int]] = {}
    for i in range(6):
        if i % 3 not in groups:
            groups[i % 3] = torch.jit.annotate(list[int], [])
        groups[i % 3].append(i + x.size(0))
    return x * len(groups), groups[2]


def layers_of_known_count(x):
    layers = {"layer0": x, "layer1": x * 2, "layer2": x + 1}
    total = x.sum()
    for i in range(3):
        total = total + layers[f"layer{i}"].sum()
    return total


@pytest.mark.parametrize(
    "program", [dicts_of_known_count, groups_of_known_count, layers_of_known_count]
)
def test_a_loop_of_known_count_is_unrolled(program) -> None:
    assert_equal_to_eager(program, [(torch.randn(s, 2),) for s in (2, 0)])
