"""What is read more than once happens once; what is left out has the type that the file states."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import sardonyx
from tests.capture.torchscript.running import assert_equal_to_eager, exported
from tests.capture.torchscript.writes import programs_read_again as programs

CASES = [*programs.KNOWN_CONDITIONS, *programs.ABSENT_VALUES, *programs.EARLIER_ENTRIES]


@pytest.mark.parametrize(
    ("program", "inputs"), CASES, ids=[getattr(p, "__name__", type(p).__name__) for p, _ in CASES]
)
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)


def test_first_reading_of_a_loop_leaves_no_note() -> None:
    made = exported(programs.known_count, programs.SIZED)
    assert not any("does not check" in note for note in made.notes)


def entry_that_is_never_set(x):
    d: dict[str, Tensor] = {}
    if float(x.sum()) > 0:
        return d["a"]
    return x


def test_entry_that_no_path_sets_is_noted() -> None:
    made = exported(entry_that_is_never_set, programs.SIGNS[1:2])
    assert any("the dict has no key 'a'" in note for note in made.notes)
    x = -torch.ones(3, 2)
    assert torch.equal(made(x), x)


def entry_read_at_once(x):
    d: dict[str, Tensor] = {}
    return d["a"] + x


def test_entry_that_is_not_there_is_refused() -> None:
    with pytest.raises(sardonyx.CaptureError, match=r"no key 'a'[\s\S]*test_read_again"):
        exported(entry_read_at_once, programs.SIGNS[:1])
