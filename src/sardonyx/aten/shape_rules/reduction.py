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


def _of_edges(
    self: torch.Tensor, bins: torch.Tensor, **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    return self.new_empty([bins.shape[0] - 1]), torch.empty_like(bins)


def _of_count(self: torch.Tensor, bins: int, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return self.new_empty([bins]), self.new_empty([bins + 1])


def _edges(self: torch.Tensor, bins: Sequence[int], **options: Any) -> list[torch.Tensor]:
    return [self.new_empty([count + 1]) for count in bins]


def _of_counts(self: torch.Tensor, bins: Sequence[int], **options: Any) -> torch.Tensor:
    return self.new_empty(list(bins))


def _of_several_edges(
    self: torch.Tensor, bins: Sequence[torch.Tensor], **options: Any
) -> torch.Tensor:
    return self.new_empty([edges.shape[0] - 1 for edges in bins])


def _with_edges(
    self: torch.Tensor, bins: Sequence[int], *options: Any
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    return _of_counts(self, bins), _edges(self, bins)


def _with_edges_of_one_count(
    self: torch.Tensor, bins: int, *options: Any
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    return _with_edges(self, [bins] * self.shape[-1])


def _with_given_edges(
    self: torch.Tensor, bins: Sequence[torch.Tensor], *options: Any
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    return _of_several_edges(self, bins), [torch.empty_like(edges) for edges in bins]


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.mean.default: _mean,
    aten.mean.dim: _mean,
    aten.linalg_norm.default: _norm,
    aten.linalg_norm.ord_str: _norm,
    aten.linalg_matrix_norm.default: _norm,
    aten.linalg_matrix_norm.str_ord: _norm,
    aten.logsumexp.default: _logsumexp,
    aten.histogram.bins_tensor: _of_edges,
    aten.histogram.bin_ct: _of_count,
    aten.histogramdd.default: _with_edges,
    aten.histogramdd.int_bins: _with_edges_of_one_count,
    aten.histogramdd.TensorList_bins: _with_given_edges,
    aten._histogramdd_bin_edges.default: _edges,
    aten._histogramdd_from_bin_cts.default: _of_counts,
    aten._histogramdd_from_bin_tensors.default: _of_several_edges,
}
