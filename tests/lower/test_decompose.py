"""An operator without a lowering is expanded by PyTorch's decomposition, for that node alone."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx.lower.lower import LIBRARY
from tests.lower.ops.harness import check


def test_a_composite_without_a_lowering_is_expanded() -> None:
    assert "aten::addcdiv" in LIBRARY  # a neighbour that has one
    missing = [n for n in ("aten::special_xlog1py", "aten::mvlgamma") if n not in LIBRARY]
    assert missing, "choose another operator that has no lowering"
    check(torch.special.xlog1py, torch.rand(3, 4) + 0.5, torch.rand(3, 4), dynamic={0: [0], 1: [0]})


def test_nothing_else_is_decomposed() -> None:
    class Both(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.gelu(torch.special.xlog1py(x, x))

    program = sardonyx.export(Both(), (torch.rand(3),), opset_version=20)
    assert "Gelu" in {node.op_type for node in program.model.graph}


@torch.library.custom_op("sardonyx_tests::without_a_form", mutates_args=())
def without_a_form(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@without_a_form.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_every_missing_operator_is_named_with_its_line() -> None:
    class Missing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            first = torch.linalg.eigvals(x).abs()  # line of the first
            second = without_a_form(x)  # line of the second
            third = torch.linalg.eigvals(x + 1).abs()
            return first + second + third

    with pytest.raises(sardonyx.UnsupportedOperatorError) as caught:
        sardonyx.export(Missing(), (torch.rand(3, 3),))
    message = str(caught.value)
    assert "aten::linalg_eig" in message and "sardonyx_tests::without_a_form" in message
    assert "(2 uses)" in message
    assert "# line of the first" in message and "# line of the second" in message
    assert "test_decompose.py:" in message
