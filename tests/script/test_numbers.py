from __future__ import annotations

from typing import Any

import pytest

from tests.script.programs_numbers import CASES
from tests.script.running import assert_equal_to_eager


@pytest.mark.parametrize(("program", "inputs"), CASES, ids=[p.__name__ for p, _ in CASES])
def test_equal_to_eager(program: Any, inputs: list[tuple[Any, ...]]) -> None:
    assert_equal_to_eager(program, inputs)
