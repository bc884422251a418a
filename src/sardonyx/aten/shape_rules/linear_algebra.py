"""The shapes of what linear algebra gives where PyTorch's own code looks at the data, or takes
sizes for numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
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
    dtypes = [x.dtype for x in (self, fweights, aweights) if x is not None]
    dtype = reduce(torch.promote_types, dtypes)
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = torch.get_default_dtype()
    is_one_variable = self.dim() < 2 or self.shape[0] == 1
    sizes = [] if is_one_variable else [self.shape[0], self.shape[0]]
    return self.new_empty(sizes, dtype=dtype)


def _linalg_lstsq(
    self: torch.Tensor,
    b: torch.Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    m, n = self.shape[-2:]
    real = self.dtype.to_real()
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
        self.new_empty([*batch, count] if has_residuals else [0], dtype=real),
        self.new_empty([0] if driver == "gels" else list(self.shape[:-2]), dtype=torch.int64),
        self.new_empty([*self.shape[:-2], min(m, n)] if has_values else [0], dtype=real),
    )


def _cdist(x1: torch.Tensor, x2: torch.Tensor, p: float, compute_mode: int | None) -> torch.Tensor:
    return x1.sum(-1).unsqueeze(-1) + x2.sum(-1).unsqueeze(-2)


def _multi_dot(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return reduce(torch.matmul, tensors)


def _grouped_mm(
    self: torch.Tensor,
    mat2: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    # PyTorch's own rule takes the dtypes of GPUs alone.
    sizes = [self.shape[-2], mat2.shape[-1]]
    if offs is None:
        sizes = [self.shape[0], *sizes]
    elif self.dim() == mat2.dim():
        sizes = [offs.shape[0], *sizes]
    return self.new_empty(sizes, dtype=out_dtype or self.dtype)


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten._grouped_mm.default: _grouped_mm,
    aten.cdist.default: _cdist,
    aten.cov.default: _cov,
    aten.corrcoef.default: _cov,
    aten.linalg_lstsq.default: _linalg_lstsq,
    aten.linalg_multi_dot.default: _multi_dot,
}
