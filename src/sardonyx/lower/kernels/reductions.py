"""Reducing over dims as ATen names them: one, several, none (all of them), or of a scalar."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sardonyx.aten.graph import Dim
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.integer_reductions import EXACT_FORMS, needs_exact_form
from sardonyx.lower.values import Tensor, product_of

_ACCUMULATED_IN = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    **dict.fromkeys(
        (torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.uint32), torch.int64
    ),
}


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """What sums of `dtype` are computed in: ATen adds halves in float32, and small integers are
    more than runtimes can add."""
    return _ACCUMULATED_IN.get(dtype, dtype)


def axes_of(x: Tensor, dim: int | Sequence[int] | None) -> list[int]:
    """The axes `dim` names, sorted; None and [] name all of them."""
    rank = x.rank
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(rank))
    given = [dim] if isinstance(dim, int) else dim
    return sorted({d % rank for d in given}) if rank else []


def reduce_dims(
    b: Builder, op: str, x: Tensor, dim: int | Sequence[int] | None, keepdim: bool = False
) -> Tensor:
    """One ONNX Reduce* node over the dims that ATen's `dim` names."""
    axes = axes_of(x, dim)
    over = None if len(axes) == x.rank else axes
    return b.op(op, x, over, keepdims=int(keepdim and x.rank > 0))


def accumulate(
    b: Builder, op: str, x: Tensor, dim: int | Sequence[int] | None, keepdim: bool = False
) -> Tensor:
    """As reduce_dims, in the dtype ATen accumulates in, given back in the dtype of `x`."""
    wide = b.cast(x, accumulation_dtype(x.dtype))
    exact = EXACT_FORMS.get(op)
    if exact is not None and needs_exact_form(op, wide, axes_of(wide, dim)):
        return b.cast(exact(b, wide, axes_of(wide, dim), keepdim), x.dtype)
    return b.cast(reduce_dims(b, op, wide, dim, keepdim), x.dtype)


def reduced_count(x: Tensor, dim: int | Sequence[int] | None) -> Dim:
    """How many elements go into each result."""
    return product_of([x.dim(axis) for axis in axes_of(x, dim)])


def may_be_empty(x: Tensor, dim: int | Sequence[int] | None) -> bool:
    """Whether there may be nothing to reduce."""
    return not all((x.static_dim(axis) or 0) > 0 for axis in axes_of(x, dim))


def vector_norm(
    b: Builder, x: Tensor, p: float, dim: int | Sequence[int] | None, keepdim: bool = False
) -> Tensor:
    """(sum |x|^p)^(1/p), and its limits at 0, inf and -inf."""
    wide = b.cast(x, accumulation_dtype(x.dtype))
    return b.cast(_wide_norm(b, wide, p, dim, keepdim), x.dtype)


def _wide_norm(
    b: Builder, x: Tensor, p: float, dim: int | Sequence[int] | None, keepdim: bool
) -> Tensor:
    if p == 1:
        return reduce_dims(b, "ReduceL1", x, dim, keepdim)
    if p == 2:
        return reduce_dims(b, "ReduceL2", x, dim, keepdim)
    if p == 0:
        nonzero = b.cast(b.Not(b.Equal(x, 0)), x.dtype)
        return reduce_dims(b, "ReduceSum", nonzero, dim, keepdim)
    magnitude = b.Abs(x)
    if p == float("inf"):
        return reduce_dims(b, "ReduceMax", magnitude, dim, keepdim)
    if p == float("-inf"):
        return reduce_dims(b, "ReduceMin", magnitude, dim, keepdim)
    total = reduce_dims(b, "ReduceSum", b.Pow(magnitude, p), dim, keepdim)
    return b.Pow(total, 1 / p)
