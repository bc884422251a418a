"""Algorithms as scripted programs, at inputs of several sizes and none, against eager."""

from __future__ import annotations

import pytest

from tests.capture.torchscript import programs_algorithms as programs
from tests.capture.torchscript.running import assert_equal_to_eager


@pytest.mark.parametrize(
    ("program", "inputs"),
    programs.ALGORITHMS,
    ids=[getattr(p, "__name__", type(p).__name__) for p, _ in programs.ALGORITHMS],
)
def test_equal_to_eager(program, inputs) -> None:
    assert_equal_to_eager(program, inputs)
