"""Shapes and dtypes that PyTorch's own rules have right since 2.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.torch_version import TorchVersion

from sardonyx import _torch_private
from sardonyx.aten.shape_rules.layers import like_input

aten = torch.ops.aten
Size = int | torch.SymInt


def _unique(
    self: torch.Tensor, sorted: bool, return_inverse: bool, return_counts: bool
) -> tuple[torch.Tensor, ...]:
    count = _torch_private.new_data_dependent_size_of(self)
    return (
        self.new_empty([count]),
        self.new_empty(self.shape if return_inverse else [0], dtype=torch.int64),
        self.new_empty([count if return_counts else 0], dtype=torch.int64),
    )


def _unique_dim(self: torch.Tensor, dim: int, *switches: bool) -> tuple[torch.Tensor, ...]:
    sizes: list[Size] = list(self.shape)
    length = sizes[dim]
    count = sizes[dim] = _torch_private.new_data_dependent_size_of(self)
    # The last two are there on a CPU, asked for or not.
    return (
        self.new_empty(sizes),
        self.new_empty([length], dtype=torch.int64),
        self.new_empty([count], dtype=torch.int64),
    )


def _unique_consecutive(
    self: torch.Tensor, return_inverse: bool, return_counts: bool, dim: int | None
) -> tuple[torch.Tensor, ...]:
    if dim is None:
        return _unique(self, False, return_inverse, return_counts)
    return _unique_dim(self, dim)


def _bincount(self: torch.Tensor, weights: torch.Tensor | None, minlength: Size) -> torch.Tensor:
    dtype = torch.int64 if weights is None else torch.float64
    if weights is not None and weights.dtype == torch.float32:
        dtype = torch.float32
    return self.new_empty([_torch_private.new_data_dependent_size_of(self)], dtype=dtype)


def _quantile(
    self: torch.Tensor, q: torch.Tensor | float, dim: int | None, keepdim: bool, **options: Any
) -> torch.Tensor:
    asked = list(q.shape) if isinstance(q, torch.Tensor) else []
    of_one = torch.sum(self, None if dim is None else [dim], keepdim)
    return self.new_empty([*asked, *of_one.shape])


def _repeat_interleave(
    self: torch.Tensor, repeats: Size, dim: int | None, **options: Any
) -> torch.Tensor:
    if dim is None:
        return self.new_empty([self.numel() * repeats])
    sizes: list[Size] = list(self.shape)
    sizes[dim] = sizes[dim] * repeats
    return self.new_empty(sizes)


def _copy_in_place(self: torch.Tensor, *arguments: Any) -> torch.Tensor:
    return self


SHAPE_RULES: dict[Any, Callable[..., Any]] = {}
if TorchVersion(torch.__version__) < "2.13":
    SHAPE_RULES = {
        aten._unique2.default: _unique,
        aten.unique_dim.default: _unique_dim,
        aten.unique_consecutive.default: _unique_consecutive,
        aten.bincount.default: _bincount,
        aten.copy.default: like_input,
        aten.copy_.default: _copy_in_place,
        aten.quantile.default: _quantile,
        aten.quantile.scalar: _quantile,
        aten.nanquantile.default: _quantile,
        aten.nanquantile.scalar: _quantile,
        aten.repeat_interleave.self_int: _repeat_interleave,
    }
