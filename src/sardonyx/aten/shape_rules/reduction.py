"""The shapes of reductions, where PyTorch's own code takes sizes for numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten


def _mean(
    self: torch.Tensor,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    wanted = dtype or self.dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError(f"mean(): the dtype of the result is floating point, not {wanted}")
    return _without(self, dim, keepdim, wanted)


def _norm(
    self: torch.Tensor,
    ord: float | str | None,
    dim: Sequence[int] | None,
    keepdim: bool,
    *,
    dtype: torch.dtype | None,
) -> torch.Tensor:
    return _without(self, dim, keepdim, (dtype or self.dtype).to_real())


def _logsumexp(self: torch.Tensor, dim: Sequence[int], keepdim: bool) -> torch.Tensor:
    is_float = self.dtype.is_floating_point or self.dtype.is_complex
    return _without(self, dim, keepdim, self.dtype if is_float else torch.get_default_dtype())


def _without(
    x: torch.Tensor, dim: Sequence[int] | None, keepdim: bool, dtype: torch.dtype
) -> torch.Tensor:
    """PyTorch's own rule of sums, which has no numbers in it."""
    return torch.sum(x, list(dim) if dim else None, keepdim, dtype=dtype)


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.mean.default: _mean,
    aten.mean.dim: _mean,
    aten.linalg_norm.default: _norm,
    aten.linalg_norm.ord_str: _norm,
    aten.linalg_matrix_norm.default: _norm,
    aten.linalg_matrix_norm.str_ord: _norm,
    aten.logsumexp.default: _logsumexp,
}
