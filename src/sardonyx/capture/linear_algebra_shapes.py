"""The shapes of what linear algebra gives where PyTorch's own code looks at the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


def _cov(
    self: torch.Tensor,
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> torch.Tensor:
    dtype = self.dtype
    for weights in (fweights, aweights):
        if weights is not None:
            dtype = torch.promote_types(dtype, weights.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = torch.get_default_dtype()
    is_one_variable = self.dim() < 2 or self.shape[0] == 1
    sizes = [] if is_one_variable else [self.shape[0], self.shape[0]]
    return self.new_empty(sizes, dtype=dtype)


def _corrcoef(self: torch.Tensor) -> torch.Tensor:
    return _cov(self)


def _linalg_lstsq(
    self: torch.Tensor,
    b: torch.Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    m, n = self.shape[-2:]
    is_vector = b.dim() == 1 or (self.dim() - 1 == b.dim() and b.shape == self.shape[:-1])
    right = b.unsqueeze(-1) if is_vector else b
    batch = list(torch.broadcast_shapes(self.shape[:-2], right.shape[:-2]))  # type: ignore[no-untyped-call]
    count = right.shape[-1]
    has_values = driver in ("gelsd", "gelss")
    # Those of a matrix that turns out not to be of full rank are left out in PyTorch.
    has_residuals = m > n and driver in ("gels", "gelsd", "gelss")
    solution = self.new_empty([*batch, n] if is_vector else [*batch, n, count])
    return (
        solution,
        self.new_empty([*batch, count] if has_residuals else [0]),
        self.new_empty([0] if driver == "gels" else list(self.shape[:-2]), dtype=torch.int64),
        self.new_empty([*self.shape[:-2], min(m, n)] if has_values else [0]),
    )


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.cov.default: _cov,
    aten.corrcoef.default: _corrcoef,
    aten.linalg_lstsq.default: _linalg_lstsq,
}
