"""Functions of torch that would specialize sizes, made of operators that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch.nn import functional as F


def _affine_grid(theta: torch.Tensor, size: Any, align_corners: bool | None = None) -> torch.Tensor:
    """Without its warning, for which it compares the sizes."""
    return torch.affine_grid_generator(theta, size, bool(align_corners))


def _kron(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    rank = max(input.dim(), other.dim())
    left, right = (x.reshape([1] * (rank - x.dim()) + list(x.shape)) for x in (input, other))
    product = left[(..., *(slice(None), None) * rank)] * right[(..., *(None, slice(None)) * rank)]
    return product.reshape([m * n for m, n in zip(left.shape, right.shape, strict=True)])


def _vander(x: torch.Tensor, N: Any = None, increasing: bool = False) -> torch.Tensor:
    count = x.shape[0] if N is None else N
    factors = x[:, None].expand(x.shape[0], count)
    is_first = torch.arange(count, device=x.device) == 0
    powers = torch.where(is_first, torch.ones_like(factors), factors).cumprod(1)
    return powers if increasing else powers.flip(1)


def _fill_diagonal(self: torch.Tensor, fill_value: Any, wrap: bool = False) -> torch.Tensor:
    if self.dim() != 2:  # all of one size
        return self.fill_diagonal_(fill_value, wrap)
    if not wrap:
        self.diagonal().fill_(fill_value)
        return self
    rows, columns = (torch.arange(size, device=self.device) for size in self.shape)
    return self.masked_fill_((rows % (self.shape[1] + 1))[:, None] == columns, fill_value)


def _pad_sequence(
    sequences: Sequence[torch.Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> torch.Tensor:
    longest: Any = reduce(torch.sym_max, (sequence.shape[0] for sequence in sequences))
    padded = []
    for sequence in sequences:
        more = longest - sequence.shape[0]
        ends = (0, more) if padding_side == "right" else (more, 0)
        around = [0, 0] * (sequence.dim() - 1)
        padded.append(torch.constant_pad_nd(sequence, [*around, *ends], padding_value))
    return torch.stack(padded, 0 if batch_first else 1)


SYMBOLIC_OPERATORS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.pad_sequence.default: _pad_sequence
}
"""The same for operators of ATen."""
SYMBOLIC_VARIANTS: dict[Any, Callable[..., Any]] = {
    F.affine_grid: _affine_grid,
    torch.kron: _kron,
    torch.Tensor.kron: _kron,
    torch.vander: _vander,
    torch.Tensor.fill_diagonal_: _fill_diagonal,
}
