"""Writes of memory at a place that a branch, a loop or a list computes: against eager, at 0, 1, 2
and 5 iterations and on both sides of every branch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import sardonyx
from tests.script import programs_computed_places as programs
from tests.script import programs_list_places as list_programs
from tests.script.random_blocks import loaded
from tests.script.random_places import PlaceWriter
from tests.script.running import assert_equal_to_eager, assert_same, exported, name_of

CASES = [
    *programs.COMPUTED,
    *programs.OF_DYNAMIC_SIZES,
    *programs.OF_OTHER_TYPES,
    *list_programs.LISTS,
    *list_programs.OF_DYNAMIC_SIZES,
]


@pytest.mark.parametrize(("program", "inputs"), CASES, ids=[name_of(p) for p, _ in CASES])
def test_equal_to_eager(program: Any, inputs: list[tuple[Any, ...]]) -> None:
    assert_equal_to_eager(program, inputs)


@pytest.mark.parametrize(("program", "lines"), programs.REFUSED, ids=lambda p: name_of(p))
def test_refused_with_both_lines(program: Any, lines: tuple[str, str]) -> None:
    with pytest.raises(sardonyx.CaptureError) as refusal:
        exported(program, programs.COUNTS)
    written, read = lines
    said = str(refusal.value).splitlines()
    assert any(line.strip().startswith("written") and line.endswith(written) for line in said)
    assert any(line.strip().startswith("read") and line.endswith(read) for line in said)


@pytest.mark.parametrize("program", list_programs.REFUSED, ids=name_of)
def test_lists_are_refused_with_the_line(program: Any) -> None:
    with pytest.raises(sardonyx.CaptureError, match="may share its memory") as refusal:
        exported(program, programs.COUNTS)
    assert "programs_list_places.py:" in str(refusal.value)


def test_the_buffer_of_the_row_is_an_output() -> None:
    model = programs.LastRow()
    made = exported(model, programs.COUNTS, state_outputs=True)
    for each in programs.COUNTS:
        eager = copy.deepcopy(model)
        eager(*copy.deepcopy(each))
        results = made._run(made.signature.flatten(copy.deepcopy(each), {}))
        (name,) = made.signature.state_outputs
        assert_same(results[name], eager.table)


def test_an_export_gives_the_same_bytes() -> None:
    first, second = (
        exported(programs.two_that_move, programs.COUNTS).model_proto.SerializeToString()
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed: int, tmp_path) -> None:
    """Names of rows and parts, at computed places; refused are only some with lists, and with
    calls that copy or not by the size of a part."""
    source = PlaceWriter(seed).program()
    program = loaded(source, tmp_path, seed)
    try:
        for each in programs.COUNTS:
            program(*copy.deepcopy(each))
    except (RuntimeError, IndexError):
        pytest.skip("PyTorch refuses a write whose source overlaps with its target")
    try:
        assert_equal_to_eager(program, programs.COUNTS)
    except sardonyx.CaptureError as refusal:
        assert "kept" in source or "flat" in source, source
        assert "may share its memory" in str(refusal), source
        assert f"program_{seed}.py:" in str(refusal), source
    except AssertionError as difference:
        raise AssertionError(f"{difference}\n\n{source}") from difference


def test_programs_of_a_trace_are_as_they_were() -> None:
    """Without branches and loops there is nothing to compute."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        whole = x.clone()
        whole[1:].mul_(2)
        return whole + y

    inputs = [(programs.COUNTS[0][0], programs.COUNTS[0][1])]
    made = assert_equal_to_eager(program, inputs, capture="trace")
    assert not {"Loop", "If"} & {node.op_type for node in made.model_proto.graph.node}
