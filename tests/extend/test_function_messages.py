"""Messages about symbolic functions, and where helpers live."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.compat import function_helpers, held_values


def test_one_home_of_what_values_hold() -> None:
    assert sardonyx.symbolic_helper._get_const is held_values._get_const
    assert function_helpers._is_none is sardonyx.symbolic_helper._is_none


def test_parts_of_a_search_have_their_graphs() -> None:
    info = sardonyx.verification.find_mismatch(lambda x: (x + 1).relu(), torch.randn(3))
    text = str(info.graph)
    assert "aten::add" in text and "aten::relu" in text and "test_function_messages.py" in text


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_sizes_have_the_callers_names(capture: str) -> None:
    def fails(g, self):
        raise ValueError("no")

    with pytest.raises(sardonyx.SymbolicFunctionError) as told:
        sardonyx.export(
            lambda x: torch.erfinv(x[1:]),
            torch.rand(3, 4),
            capture=capture,
            dynamic_axes={"x": {0: "rows"}},
            custom_translation_table={torch.ops.aten.erfinv.default: fails},
        )
    assert "rows - 1" in str(told.value)
