"""Results of operators whose own rules ask whether a size is 0 or 1, which data may decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten


def _like_input(input: torch.Tensor, *arguments: Any, **options: Any) -> torch.Tensor:
    return torch.empty_like(input)


def _logsumexp(self: torch.Tensor, dim: Sequence[int], keepdim: bool = False) -> torch.Tensor:
    is_float = self.dtype.is_floating_point or self.dtype.is_complex
    dtype = self.dtype if is_float else torch.get_default_dtype()
    return self.sum(list(dim), keepdim, dtype=dtype)


def _cdist(
    x1: torch.Tensor, x2: torch.Tensor, p: float = 2.0, compute_mode: int | None = None
) -> torch.Tensor:
    return x1.sum(-1).unsqueeze(-1) + x2.sum(-1).unsqueeze(-2)


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.batch_norm.default: _like_input,
    aten.group_norm.default: _like_input,
    aten.logsumexp.default: _logsumexp,
    aten.cdist.default: _cdist,
}
