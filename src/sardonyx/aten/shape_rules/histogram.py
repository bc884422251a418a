"""The shapes of histograms, for which PyTorch has no rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten


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
    aten.histogram.bins_tensor: _of_edges,
    aten.histogram.bin_ct: _of_count,
    aten.histogramdd.default: _with_edges,
    aten.histogramdd.int_bins: _with_edges_of_one_count,
    aten.histogramdd.TensorList_bins: _with_given_edges,
    aten._histogramdd_bin_edges.default: _edges,
    aten._histogramdd_from_bin_cts.default: _of_counts,
    aten._histogramdd_from_bin_tensors.default: _of_several_edges,
}
