"""PyTorch's type promotion, asked of PyTorch itself."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import sympy
import torch

from sardonyx.lower.values import Scalar, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

Operand = Tensor | Scalar | torch.Tensor


def result_dtype(*operands: Operand) -> torch.dtype:
    """The dtype `torch.result_type` gives; 0-d tensors and Python scalars count as there."""
    keys = tuple(_key(operand) for operand in operands)
    return _result_of(keys)


def float_dtype(*operands: Operand) -> torch.dtype:
    """As result_dtype, with integers and bools promoted to the default float type."""
    dtype = result_dtype(*operands)
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    """sum, prod and cumsum accumulate integers and bools in int64."""
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.int64


def _key(operand: Operand) -> tuple[torch.dtype | type, bool]:
    """(dtype, has dims) of a tensor; (Python type, False) of a scalar."""
    if isinstance(operand, Tensor):
        return operand.dtype, operand.shape is None or len(operand.shape) > 0
    if isinstance(operand, torch.Tensor):
        return operand.dtype, operand.dim() > 0
    if isinstance(operand, sympy.Expr):
        return (int if operand.is_integer else float), False
    return type(operand), False


@cache
def _result_of(keys: Sequence[tuple[torch.dtype | type, bool]]) -> torch.dtype:
    stand_ins: list[torch.Tensor | bool | int | float | complex] = [
        torch.empty((1,) if has_dims else (), dtype=kind)
        if isinstance(kind, torch.dtype)
        else kind(1)
        for kind, has_dims in keys
    ]
    if len(stand_ins) == 1:
        stand_ins = [stand_ins[0], stand_ins[0]]
    # result_type is pairwise; folding pairs would lose which operands have dims.
    with_dims = [s for (_, has_dims), s in zip(keys, stand_ins, strict=False) if has_dims]
    zero_dim = [
        s
        for (kind, has_dims), s in zip(keys, stand_ins, strict=False)
        if not has_dims and isinstance(kind, torch.dtype)
    ]
    numbers = [s for (kind, _), s in zip(keys, stand_ins, strict=False) if isinstance(kind, type)]
    groups = []
    for group in (with_dims, zero_dim):
        dtype = None
        for s in group:
            assert isinstance(s, torch.Tensor)
            dtype = s.dtype if dtype is None else torch.promote_types(dtype, s.dtype)
        if dtype is not None:
            groups.append(torch.empty((1,) if group is with_dims else (), dtype=dtype))
    current: torch.Tensor | bool | int | float | complex | None = None
    has_dims = bool(with_dims)
    for operand in [*groups, *numbers]:
        if current is None:
            current = operand
            continue
        dtype = torch.result_type(current, operand)
        current = torch.empty((1,) if has_dims else (), dtype=dtype)
    if current is None:
        raise ValueError("no operands")
    return current.dtype if isinstance(current, torch.Tensor) else torch.result_type(current, current)
