"""The shapes of reductions and histograms, where PyTorch has no rule or turns symbolic sizes into
numbers."""

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
    """PyTorch's rule for sums keeps sizes symbolic."""
    return torch.sum(x, list(dim) if dim else None, keepdim, dtype=dtype)


# -- histograms, which PyTorch has no rules for ----------------------------------------------------


def _histogramdd(
    self: torch.Tensor, bins: Any, *options: Any, **more: Any
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """`bins` are edges or their numbers, for each dim or for all."""
    of_dims = [bins] * self.shape[-1] if isinstance(bins, int) else bins
    edges = [
        torch.empty_like(b) if isinstance(b, torch.Tensor) else self.new_empty([b + 1])
        for b in of_dims
    ]
    return self.new_empty([of_dim.shape[0] - 1 for of_dim in edges]), edges


def _histogram(self: torch.Tensor, bins: Any, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    counts, (edges,) = _histogramdd(self, [bins])
    return counts, edges


def _counts(self: torch.Tensor, bins: Any, **options: Any) -> torch.Tensor:
    return _histogramdd(self, bins)[0]


def _edges(self: torch.Tensor, bins: Sequence[int], **options: Any) -> list[torch.Tensor]:
    return _histogramdd(self, bins)[1]


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.mean.default: _mean,
    aten.mean.dim: _mean,
    aten.linalg_norm.default: _norm,
    aten.linalg_norm.ord_str: _norm,
    aten.linalg_matrix_norm.default: _norm,
    aten.linalg_matrix_norm.str_ord: _norm,
    aten.logsumexp.default: _logsumexp,
    aten.histogram.bins_tensor: _histogram,
    aten.histogram.bin_ct: _histogram,
    aten.histogramdd.default: _histogramdd,
    aten.histogramdd.int_bins: _histogramdd,
    aten.histogramdd.TensorList_bins: _histogramdd,
    aten._histogramdd_bin_edges.default: _edges,
    aten._histogramdd_from_bin_cts.default: _counts,
    aten._histogramdd_from_bin_tensors.default: _counts,
}
