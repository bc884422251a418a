"""Comparisons. Operands are promoted first, as PyTorch does: uint8 against 0.5 compares floats."""

from __future__ import annotations

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor


def _both(*names: str) -> list[str]:
    return [f"aten::{name}.{kind}" for name in names for kind in ("Tensor", "Scalar")]


@lowering(*_both("eq"), op="Equal")
@lowering(*_both("lt", "less"), op="Less")
@lowering(*_both("le", "less_equal"), op="LessOrEqual")
@lowering(*_both("gt", "greater"), op="Greater")
@lowering(*_both("ge", "greater_equal"), op="GreaterOrEqual")
def compare(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar, op: str) -> Tensor:
    x, y = b.promote(self, other)
    if x.dtype == torch.bool and op != "Equal":  # ONNX orders numbers only
        x, y = b.cast(x, torch.int32), b.cast(y, torch.int32)
    return b.op(op, x, y)


@lowering(*_both("ne", "not_equal"))
def ne(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    return b.Not(compare(b, self, other, "Equal"))


@lowering("aten::isin.Tensor_Tensor", "aten::isin.Tensor_Scalar", "aten::isin.Scalar_Tensor")
def isin(
    b: Builder,
    elements: Tensor | None = None,
    test_elements: Tensor | None = None,
    element: Scalar | None = None,
    test_element: Scalar | None = None,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    sought = elements if elements is not None else element
    among = test_elements if test_elements is not None else test_element
    assert sought is not None and among is not None
    x, y = b.promote(sought, among, dtype=type_promotion.result_dtype(sought, among))
    equal = b.Equal(b.unsqueeze(x, [-1]), b.reshape(y, [-1]))
    # The largest of no matches is not defined; a sum of none is 0.
    count = b.ReduceSum(b.cast(equal, torch.int32), [x.rank], keepdims=0)
    found = b.Greater(count, 0)
    return elementwise.is_zero(b, found) if invert else found
