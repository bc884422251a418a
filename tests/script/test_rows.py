"""Lists of more than tensors, whose length is known at run time, against eager."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from tests.script import programs_ragged
from tests.script import programs_rows as programs
from tests.script.running import assert_equal_to_eager, exported

CASES = [
    *programs.LISTS,
    *programs.DETECTED,
    *programs.DECODED,
    *programs_ragged.RAGGED,
    *programs_ragged.CHANGED,
    *programs_ragged.GROUPED,
    *programs_ragged.PUT,
]
REFUSED = [*programs.REFUSED, *programs_ragged.REFUSED]


@pytest.mark.parametrize(("program", "inputs"), CASES, ids=[p.__name__ for p, _ in CASES])
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)


@pytest.mark.parametrize(("program", "inputs"), REFUSED, ids=[p.__name__ for p, _ in REFUSED])
def test_changes_that_a_list_would_have_to_see_are_refused(program, inputs) -> None:
    with pytest.raises(sardonyx.CaptureError, match=r"changed[\s\S]*programs_r\w*\.py:"):
        exported(program, inputs)


def changed_where_the_count_is_known(x):
    kept = [{"a": x}]
    for i in range(2):
        kept.append({"a": x + i})
    kept[0]["a"] = x * 5
    for entry in kept:
        entry["a"] = entry["a"] + 1
    return torch.stack([entry["a"] for entry in kept])


def test_lists_of_known_length_may_change() -> None:
    assert_equal_to_eager(changed_where_the_count_is_known, [(torch.randn(s, 2),) for s in (2, 0)])


def returned(x, n: int):
    kept: list[dict[str, torch.Tensor]] = []
    for i in range(n):
        kept.append({"a": x + i})
    return kept


def test_a_returned_list_of_dicts_is_refused_with_what_to_do() -> None:
    with pytest.raises(sardonyx.CaptureError, match="return a list for each key of the dicts"):
        exported(returned, programs.SIZED)


def different_keys(x, n: int):
    kept: list[dict[str, torch.Tensor]] = []
    for i in range(n):
        if i % 2 == 0:
            kept.append({"a": x})
        else:
            kept.append({"b": x})
    return len(kept)


def test_dicts_of_different_keys_are_refused() -> None:
    with pytest.raises(sardonyx.CaptureError, match=r"keys \['a'\][\s\S]*test_rows\.py:"):
        exported(different_keys, programs.SIZED)


def table(x, n: int):
    rows: list[list[int]] = []
    for i in range(n):
        rows.append([i, i * i, x.size(0)])
    return torch.tensor(rows)


def test_a_tensor_of_rows() -> None:
    made = exported(table, programs.SIZED)
    assert torch.equal(made(torch.ones(4, 3), 3), table(torch.ones(4, 3), 3))
    assert made(torch.ones(4, 3), 0).shape == (0, 3)
    assert any("of an empty list" in note for note in made.notes)
