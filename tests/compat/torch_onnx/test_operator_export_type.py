"""`operator_export_type`: operators that ONNX lacks, or all, as PyTorch has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import Tensor

import sardonyx
from sardonyx import OperatorExportTypes

CAPTURES = ("export", "trace")


@pytest.fixture(scope="module")
def library() -> Iterator[None]:
    with torch.library._scoped_library("fallback_test", "DEF") as made:
        made.define("bar(Tensor x, float scale, int[] dims) -> Tensor")
        made.impl("bar", lambda x, scale, dims: x * scale, "CPU")
        made.impl("bar", lambda x, scale, dims: torch.empty_like(x), "Meta")
        yield


class Bar(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.fallback_test.bar(x.exp(), 0.1, [0, 1])


class Triu(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.triu(x, 0) * x


class Combination(torch.nn.Module):
    """An operator that has no form."""

    def forward(self, x: Tensor) -> Tensor:
        return torch._compute_linear_combination(x, x) * x


def _calls(program: sardonyx.ONNXProgram) -> list[ir.Node]:
    return [node for node in program.model.graph if node.op_type != "Constant"]


def _names(program: sardonyx.ONNXProgram) -> list[str]:
    return [f"{node.domain or 'onnx'}::{node.op_type}" for node in _calls(program)]


def _texts(node: ir.Node) -> dict[str, Any]:
    return {name: attribute.value for name, attribute in node.attributes.items()}


def _constant(value: ir.Value | None) -> Any:
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    assert tensor is not None
    return tensor.numpy().tolist()


@pytest.mark.parametrize("capture", CAPTURES)
def test_all_of_aten(capture: str) -> None:
    program = sardonyx.export(
        Triu(),
        (torch.randn(3, 3),),
        capture=capture,
        operator_export_type=OperatorExportTypes.ONNX_ATEN,
    )
    assert _names(program) == ["org.pytorch.aten::ATen"] * 2
    triu, mul = _calls(program)
    assert _texts(triu) == {"operator": "triu", "overload_name": ""}
    assert _texts(mul) == {"operator": "mul", "overload_name": "Tensor"}
    assert _constant(triu.inputs[1]) == 0
    assert program.model.opset_imports["org.pytorch.aten"] == 1
    (output,) = program.model.graph.outputs
    assert output.dtype == ir.DataType.FLOAT and output.shape == ir.Shape([3, 3])


@pytest.mark.parametrize("capture", CAPTURES)
def test_operators_that_have_a_form_keep_it(capture: str) -> None:
    program = sardonyx.export(
        Triu(),
        (torch.randn(3, 3),),
        capture=capture,
        operator_export_type=OperatorExportTypes.ONNX_ATEN_FALLBACK,
        verify=True,
    )
    assert _names(program) == ["onnx::Trilu", "onnx::Mul"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_operators_that_have_none_fall_back(capture: str) -> None:
    x = torch.randn(3, 3)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="_compute_linear_combination"):
        sardonyx.export(Combination(), (x,), capture=capture)
    program = sardonyx.export(
        Combination(),
        (x,),
        capture=capture,
        operator_export_type=OperatorExportTypes.ONNX_ATEN_FALLBACK,
    )
    assert _names(program) == ["org.pytorch.aten::ATen", "onnx::Mul"]
    assert _texts(_calls(program)[0])["operator"] == "_compute_linear_combination"


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.usefixtures("library")
def test_fallthrough(capture: str) -> None:
    program = sardonyx.export(
        Bar(),
        (torch.randn(2, 3),),
        capture=capture,
        operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH,
        custom_opsets={"fallback_test": 3},
    )
    assert _names(program) == ["onnx::Exp", "fallback_test::bar"]
    bar = _calls(program)[1]
    assert [_constant(value) for value in bar.inputs[1:]] == [0.1, [0, 1]]
    assert program.model.opset_imports["fallback_test"] == 3


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.usefixtures("library")
def test_raw(capture: str) -> None:
    program = sardonyx.export(
        Bar(),
        (torch.randn(2, 3),),
        capture=capture,
        operator_export_type=OperatorExportTypes.RAW,
    )
    assert _names(program) == ["aten::exp", "fallback_test::bar"]


@pytest.mark.parametrize("kind", [OperatorExportTypes.ONNX, OperatorExportTypes.ONNX_ATEN_FALLBACK])
@pytest.mark.usefixtures("library")
def test_other_types_refuse_operators_that_are_not_of_aten(kind: OperatorExportTypes) -> None:
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="fallback_test::bar") as caught:
        sardonyx.export(Bar(), (torch.randn(2, 3),), operator_export_type=kind)
    falls_back = kind is not OperatorExportTypes.ONNX
    assert ("ONNX_FALLTHROUGH" in str(caught.value)) == falls_back, "what would have done"


@pytest.mark.usefixtures("library")
def test_a_symbolic_function_comes_first() -> None:
    def bar(g: Any, x: Any, scale: Any, dims: Any) -> Any:
        return g.op("Mul", x, g.op("Constant", value_t=torch.tensor(0.1)))

    sardonyx.register_custom_op_symbolic("fallback_test::bar", bar, 9)
    try:
        program = sardonyx.export(
            Bar(),
            (torch.randn(2, 3),),
            operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH,
            verify=True,
        )
    finally:
        sardonyx.unregister_custom_op_symbolic("fallback_test::bar", 9)
    assert "fallback_test::bar" not in _names(program)


def test_what_is_no_type_is_refused() -> None:
    with pytest.raises(sardonyx.InvalidOptionError, match="operator_export_type='ATEN' is not"):
        sardonyx.export(Triu(), (torch.randn(2, 2),), operator_export_type="ATEN")


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * x


class Squared(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return Square.apply(x) + 1


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize(
    "kind", [OperatorExportTypes.ONNX_FALLTHROUGH, OperatorExportTypes.ONNX_ATEN_FALLBACK]
)
def test_autograd_functions_are_not_inlined(capture: str, kind: OperatorExportTypes) -> None:
    program = sardonyx.export(
        Squared(), (torch.randn(3),), capture=capture, operator_export_type=kind
    )
    assert [node.op_type for node in _calls(program)] == ["PythonOp", "Add"]
    inlined = sardonyx.export(Squared(), (torch.randn(3),), capture=capture)
    assert [node.op_type for node in _calls(inlined)] == ["Mul", "Add"]
