"""Legality computed from the schemas."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from sardonyx.lower.onnx_types.legality import (
    lowest_opset_for,
    newest_opset,
    ops_changed_by,
    why_illegal,
)


def value(name: str, dtype: ir.DataType | None = ir.DataType.FLOAT) -> ir.Value:
    return ir.Value(name=name, type=None if dtype is None else ir.TensorType(dtype))


X = value("x")
BOOL = value("b", ir.DataType.BOOL)
HALF = value("h", ir.DataType.BFLOAT16)
INT = value("i", ir.DataType.INT64)

CASES = [
    (ir.node("Relu", [X]), 17, None),
    (ir.node("Gelu", [X]), 20, None),
    (ir.node("Gelu", [X]), 19, "the operator does not exist there"),
    (ir.node("NoSuchOp", [X]), 28, "the operator does not exist there"),
    (ir.node("Upsample", [X, X]), 17, "the operator is deprecated there"),
    (ir.node("Split", [X], {"num_outputs": 2}), 17, "attribute num_outputs does not exist there"),
    (ir.node("Cast", [X]), 20, "attribute to is required there"),
    (ir.node("ReduceMax", [X, INT]), 17, "it has 2 inputs and may have 1 there"),
    (ir.node("Add", [X]), 17, "it has 1 inputs and needs 2 there"),
    (ir.node("Add", [None, X]), 17, "input A is required there"),
    (ir.node("Clip", [X, None, X]), 17, None),
    (ir.node("ReduceMax", [BOOL, INT]), 19, "data may not be tensor(bool) there"),
    (ir.node("ReduceMax", [BOOL, INT]), 20, None),
    (ir.node("Cos", [HALF]), 21, "input may not be tensor(bfloat16) there"),
    (ir.node("Cos", [value("u", None)]), 17, None),
    (ir.node("Add", [X, INT]), 20, "B is tensor(int64) but A is tensor(float)"),
    (ir.node("Concat", [X, X, X], {"axis": 0}), 20, None),
    (ir.node("Anything", [X], domain="com.example"), 17, None),
]


@pytest.mark.parametrize(
    ("node", "opset", "reason"), CASES, ids=lambda c: getattr(c, "op_type", None)
)
def test_why_illegal(node: ir.Node, opset: int, reason: str | None) -> None:
    assert why_illegal(node, opset) == reason


def test_output_types_are_checked() -> None:
    out = value("out", ir.DataType.INT64)
    assert why_illegal(ir.node("Cos", [X], outputs=[out]), 22) is not None


def test_lowest_opset() -> None:
    assert lowest_opset_for(ir.node("Gelu", [X]), 17) == 20
    assert lowest_opset_for(ir.node("NoSuchOp", [X]), 17) is None


def test_changes() -> None:
    assert "Gelu" in ops_changed_by(20)
    assert "Relu" not in ops_changed_by(20)
    assert newest_opset() >= 28
