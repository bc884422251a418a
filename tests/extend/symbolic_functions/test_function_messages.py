"""Messages about functions of quantized operators speak of the arguments that those have."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.compat import function_helpers, value_helpers


def _added(x: torch.Tensor) -> torch.Tensor:
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    return torch.ops.quantized.add(q, q, 0.2, 5).dequantize()


def test_a_function_that_gives_nothing() -> None:
    def add(g, qa, qb, scale, zero_point):
        return None

    with pytest.raises(sardonyx.UnsupportedOperatorError) as told:
        sardonyx.export(
            _added,
            torch.randn(2, 3),
            capture="trace",
            custom_translation_table={torch.ops.quantized.add.default: add},
        )
    message = str(told.value)
    assert "quantized::add  its symbolic function returned None" in message
    assert "qa: uint8[2, 3], qa_scale: float32[], qa_zero_point: uint8[]" in message
    assert "operand_" not in message


def test_items_of_lists_are_told_by_their_places() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
        other = torch.quantize_per_tensor(x * 2, 0.1, 3, torch.quint8)
        return torch.ops.quantized.cat([q, other], 0, 0.2, 5).dequantize()

    def cat(g, qx, dim, scale, zero_point):
        return None

    with pytest.raises(
        sardonyx.UnsupportedOperatorError, match=r"qx_0: uint8\[2, 3\].*qx_1: uint8"
    ):
        sardonyx.export(
            model,
            torch.randn(2, 3),
            capture="trace",
            custom_translation_table={torch.ops.quantized.cat.default: cat},
        )


def test_one_home_of_what_values_hold() -> None:
    assert sardonyx.symbolic_helper._get_const is value_helpers._get_const
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
