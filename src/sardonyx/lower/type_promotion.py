"""PyTorch's type promotion: tensors with dims outrank 0-d tensors, which outrank scalars."""

from __future__ import annotations

from functools import reduce

import sympy
import torch
from sympy.logic.boolalg import Boolean

from sardonyx.lower.values import Scalar, Tensor

Operand = Tensor | Scalar | torch.Tensor

_HALVES = (torch.float16, torch.bfloat16)


def result_dtype(*operands: Operand) -> torch.dtype:
    """The dtype `torch.result_type` gives for all operands together."""
    with_dims: list[torch.dtype] = []
    without_dims: list[torch.dtype] = []
    scalars: list[torch.dtype] = []
    for operand in operands:
        if isinstance(operand, Tensor):
            group = without_dims if operand.shape == () else with_dims
            group.append(operand.dtype)
        elif isinstance(operand, torch.Tensor):
            (with_dims if operand.dim() else without_dims).append(operand.dtype)
        else:
            scalars.append(scalar_dtype(operand))
    groups = [
        reduce(torch.promote_types, group) if group else None
        for group in (with_dims, without_dims, scalars)
    ]
    dtype = _outranked(groups[0], _outranked(groups[1], groups[2]))
    if dtype is None:
        raise ValueError("no operands")
    return dtype


def scalar_dtype(scalar: Scalar) -> torch.dtype:
    """The dtype a Python scalar has as a tensor."""
    if isinstance(scalar, sympy.Expr):
        return torch.int64 if scalar.is_integer else torch.get_default_dtype()
    if isinstance(scalar, (bool, Boolean)):
        return torch.bool
    if isinstance(scalar, int):
        return torch.int64
    if isinstance(scalar, complex):
        return torch.get_default_dtype().to_complex()
    return torch.get_default_dtype()


def float_dtype(*operands: Operand) -> torch.dtype:
    """As result_dtype, with integers and bools promoted to the default float type."""
    dtype = result_dtype(*operands)
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()


def computing_dtype(dtype: torch.dtype, *numbers: Tensor | Scalar) -> torch.dtype:
    """`dtype`, or float32 where that is a half which does not hold one of the numbers.

    For operators that take their numbers (Python's, or tensors of one element) as they are and
    round the result only: products, quotients and most activations. Sums, powers, bounds and
    comparisons round the numbers first.
    """
    if dtype not in _HALVES or all(_holds(dtype, number) for number in numbers):
        return dtype
    return torch.float32


def _holds(dtype: torch.dtype, number: Tensor | Scalar) -> bool:
    if isinstance(number, Tensor):
        if number.dtype == dtype or number.shape is None or any(d != 1 for d in number.shape):
            return True  # tensors of more elements are cast first
        if number.const is None:
            return not number.dtype.is_floating_point and number.dtype.itemsize == 1
        return _holds(dtype, number.const.item())
    if isinstance(number, sympy.Basic):
        if number.free_symbols:
            return False
        number = float(number)
    if isinstance(number, complex):
        return True
    rounded = torch.tensor(float(number), dtype=torch.float64).to(dtype).item()
    return rounded == number or number != number


def once_rounded_dtype(dtype: torch.dtype) -> torch.dtype:
    """Where PyTorch computes with halves in one step and rounds what comes of it: float32."""
    return torch.float32 if dtype in _HALVES else dtype


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    """sum, prod and cumsum accumulate integers and bools in int64."""
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.int64


def _outranked(high: torch.dtype | None, low: torch.dtype | None) -> torch.dtype | None:
    """`high`, unless `low` is of a higher category (bool < integer < float < complex)."""
    if high is None or low is None:
        return low if high is None else high
    if high.is_complex:
        return high
    if high.is_floating_point:
        return high.to_complex() if low.is_complex else high
    if high == torch.bool or low.is_floating_point or low.is_complex:
        return torch.promote_types(high, low)
    return high
