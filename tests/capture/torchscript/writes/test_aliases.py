"""Writes of tensors that loops carry, branches choose and lists hold: equal to eager, at 0, 1, 2
and 5 iterations and on both sides of every branch; or refused with the line."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest

import sardonyx
from tests.capture.torchscript.random_aliases import AliasWriter
from tests.capture.torchscript.random_blocks import BlockWriter, loaded
from tests.capture.torchscript.random_places import PlaceWriter
from tests.capture.torchscript.running import assert_equal_to_eager, exported, name_of
from tests.capture.torchscript.writes import programs_aliases as programs

CASES = [*programs.EQUAL, *programs.OF_DYNAMIC_SIZES]


@pytest.mark.parametrize(("program", "inputs"), CASES, ids=[name_of(p) for p, _ in CASES])
def test_equal_to_eager(program: Any, inputs: list[tuple[Any, ...]]) -> None:
    assert_equal_to_eager(program, inputs)


@pytest.mark.parametrize(("program", "written", "read"), programs.UNCERTAIN, ids=name_of)
def test_memory_chosen_at_run_time_is_refused_with_both_lines(
    program: Any, written: str, read: str
) -> None:
    with pytest.raises(sardonyx.CaptureError, match="may share its memory") as refusal:
        exported(program, programs.COUNTS)
    said = [line.strip() for line in str(refusal.value).splitlines()]
    assert any(line.startswith("written") and line.endswith(written) for line in said), said
    assert any(line.startswith("read") and line.endswith(read) for line in said), said
    assert any(line.startswith("try") and "clone()" in line for line in said)


@pytest.mark.parametrize(("program", "message"), programs.REFUSED, ids=name_of)
def test_refused_with_the_line(program: Any, message: str) -> None:
    given = inspect.signature(program).parameters
    inputs = [each[: len(given)] for each in programs.COUNTS]
    with pytest.raises(sardonyx.CaptureError, match=message) as refusal:
        exported(program, inputs)
    assert "programs_aliases.py:" in str(refusal.value)


@pytest.mark.parametrize("writer", [AliasWriter, PlaceWriter])
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_are_right_or_refused(
    seed: int, writer: type[BlockWriter], tmp_path: Any
) -> None:
    source = writer(seed).program()
    program = loaded(source, tmp_path, seed)
    try:
        for each in programs.COUNTS:
            program(*copy.deepcopy(each))
    except (RuntimeError, IndexError):
        pytest.skip("PyTorch refuses a write whose source overlaps with its target")
    try:
        assert_equal_to_eager(program, programs.COUNTS)
    except sardonyx.CaptureError as refusal:
        assert "may share its memory" in str(refusal), source
        assert f"program_{seed}.py:" in str(refusal), source
    except AssertionError as difference:
        raise AssertionError(f"{difference}\n\n{source}") from difference
