"""The dtypes of operands: ONNX's schemas, and PyTorch's type promotion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import onnx
import sympy
import torch

from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.values import SymbolicValue
from sardonyx.lower.onnx_types.schemas import OpSchema, op_schema
from sardonyx.lower.type_promotion import scalar_dtype

_PROMOTING = frozenset({
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Sum", "Mean", "PRelu", "MatMul",
    "Gemm", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Where", "Concat",
})  # fmt: skip
"""Operators whose operands PyTorch brings to one dtype."""


def schema_at(name: str, opset: int) -> OpSchema:
    if onnx.defs.has(name, opset, ""):
        schema = op_schema(name, opset)
        if not schema.raw.deprecated:
            return schema
        raise SymbolicFunctionError(f"ONNX's {name} is deprecated at opset {opset}")
    if onnx.defs.has(name):
        since = min(
            s.since_version
            for s in onnx.defs.get_all_schemas_with_history()
            if s.name == name and s.domain == ""
        )
        raise SymbolicFunctionError(
            f"ONNX has no {name} at opset {opset}: it came with opset {since}"
        )
    raise SymbolicFunctionError(
        f"ONNX has no operator {name!r}; one of your own is written domain::{name}"
    )


def common_dtype(operator: str, operands: Sequence[Any]) -> torch.dtype | None:
    """The dtype that operands of one type variable have together."""
    known = [found for operand in operands if (found := _dtype_and_rank(operand)) is not None]
    if all(is_python for _, _, is_python in known):
        return None
    dtypes = {dtype for dtype, _, is_python in known if not is_python}
    tensors = [dtype for dtype, is_number, _ in known if not is_number]
    numbers = [dtype for dtype, is_number, _ in known if is_number]
    if len(dtypes) == 1 and all(_holds(next(iter(dtypes)), number) for number in numbers):
        return next(iter(dtypes))
    if len(set(tensors)) == 1 and all(_holds(tensors[0], number) for number in numbers):
        return tensors[0]
    if operator not in _PROMOTING:
        listed = ", ".join(sorted({str(dtype) for dtype, _, _ in known}))
        raise SymbolicFunctionError(
            f"{operator} takes operands of one dtype, and these are {listed}: cast them with"
            ' g.op("Cast", x, to_i=...)'
        )
    if not tensors:
        return reduce(torch.promote_types, numbers)
    dtype = reduce(torch.promote_types, tensors)
    if all(_holds(dtype, number) for number in numbers):
        return dtype
    return reduce(torch.promote_types, (dtype, *numbers))


def _dtype_and_rank(operand: Any) -> tuple[torch.dtype, bool, bool] | None:
    """The dtype of an operand, whether it is a number, and whether it is one of Python's."""
    if isinstance(operand, SymbolicValue) and not operand.is_tensor:
        operand = operand.content
    if isinstance(operand, torch.Tensor):
        return operand.dtype, operand.dim() == 0, False
    if isinstance(operand, SymbolicValue):
        is_number = operand.const is not None and operand.const.dim() == 0
        return None if operand.dtype is None else (operand.dtype, is_number, False)
    if isinstance(operand, (bool, int, float, complex, sympy.Basic)):
        return scalar_dtype(operand), True, True
    return None


def _holds(dtype: torch.dtype, number: torch.dtype) -> bool:
    """Whether a number of that dtype leaves a tensor's dtype as it is, as in PyTorch."""
    order = (dtype.is_complex, dtype.is_floating_point, dtype != torch.bool)
    return order >= (number.is_complex, number.is_floating_point, number != torch.bool)
