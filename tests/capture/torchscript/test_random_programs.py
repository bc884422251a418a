"""Random scripted programs against eager: the same numbers, or a refusal that names a line."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sardonyx
from tests.capture.torchscript.random_blocks import loaded
from tests.capture.torchscript.random_programs import ProgramWriter
from tests.capture.torchscript.running import assert_equal_to_eager

EXAMPLES = int(os.environ.get("SARDONYX_RANDOM_SCRIPTS", "40"))


def _rows(count: int) -> torch.Tensor:
    return torch.arange(1.0, 2 * count + 1).reshape(count, 2) * 0.5 - 1


INPUTS = [
    (_rows(3), 2, 1),
    (_rows(4), 0, 5),
    (_rows(2), 3, -1),
    (_rows(1), 1, 2),
    (-_rows(3), 4, 0),
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"folder": tmp_path_factory.mktemp("programs"), "equal": 0, "refused": 0}


def _runs(program: Any) -> bool:
    """PyTorch refuses a write whose source overlaps with its target."""
    try:
        for each in INPUTS:
            program(*copy.deepcopy(each))
    except RuntimeError:
        return False
    return True


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(random=st.randoms(use_true_random=True), with_lists=st.booleans())
def test_equal_to_eager(outcomes, random, with_lists) -> None:
    source = ProgramWriter(random.randrange, with_lists=with_lists).program()
    number = outcomes["equal"] + outcomes["refused"]
    program = loaded(source, outcomes["folder"], number)
    if not _runs(program):
        return
    try:
        assert_equal_to_eager(program, INPUTS)
        outcomes["equal"] += 1
    except sardonyx.CaptureError as refusal:
        assert f"program_{number}.py:" in str(refusal), source
        assert "may share its memory" in str(refusal), source
        outcomes["refused"] += 1
    except AssertionError as difference:
        raise AssertionError(f"{difference}\n\n{source}") from difference


def test_few_are_refused(outcomes) -> None:
    assert outcomes["refused"] * 6 <= outcomes["equal"]
