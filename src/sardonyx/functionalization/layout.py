"""How a tensor lies in memory: its sizes and strides, symbolic where the sizes are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Dim
from sardonyx.functionalization.views import Strided


def layout_of(tensor: torch.Tensor) -> tuple[list[Dim], list[Dim]]:
    """Its sizes and strides."""
    sizes, strides = tensor.shape, tensor.stride()
    return [_torch_private.dim_of(d) for d in sizes], [_torch_private.dim_of(d) for d in strides]


def has_no_gaps(sizes: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    """Whether a tensor of these sizes and strides is contiguous."""
    dense: Dim = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != dense:
            return False
        dense = dense * size
    return True


def same_view(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors of one storage are the same view of it."""
    same_size = _torch_private.same_size
    return (
        left.dtype == right.dtype
        and left.is_conj() == right.is_conj()
        and left.is_neg() == right.is_neg()
        and left.dim() == right.dim()
        and all(map(same_size, left.shape, right.shape))
        and all(map(same_size, left.stride(), right.stride()))
        and same_size(left.storage_offset(), right.storage_offset())
    )


def strided_inside(
    base: torch.Tensor, size: tuple[Any, ...], stride: tuple[Any, ...], offset: Any
) -> Strided | None:
    """The strided view of `base`; None where the memory of `base` has gaps or repetitions."""
    sizes, strides = layout_of(base)
    perm = list(range(len(sizes)))
    if all(isinstance(d, int) for d in (*sizes, *strides)):
        perm.sort(key=lambda axis: (-strides[axis], -sizes[axis]))
    if not has_no_gaps([sizes[axis] for axis in perm], [strides[axis] for axis in perm]):
        return None
    return Strided(tuple(perm), size, stride, offset)
