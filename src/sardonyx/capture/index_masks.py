"""Tensors that index tensors, in the forms that both ways of recording have records for."""

from __future__ import annotations

from typing import Any

import torch

from sardonyx import _torch_private


def with_plain_masks(
    tensor: torch.Tensor, index: Any, assigned: Any = None
) -> tuple[torch.Tensor, Any]:
    """The parts of tensor[index], or of tensor[index] = assigned, with masks of bools that have
    dims."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(map(_is_of_bytes, parts)) and not _is_refused(assigned):
        parts = tuple(part.to(torch.bool) if _is_of_bytes(part) else part for part in parts)
        index = parts if isinstance(index, tuple) else parts[0]
    mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if isinstance(mask, torch.Tensor) and mask.dim() == 0 and mask.dtype == torch.bool:
        # It stands for a dim of the result that has the size 1 or 0.
        return tensor.unsqueeze(0), mask.reshape(1)
    return tensor, index


def has_masks(index: Any) -> bool:
    """Whether `with_plain_masks` may change something."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(p, torch.Tensor) and p.dtype in (torch.bool, torch.uint8) for p in parts)


def put(tensor: torch.Tensor, index: Any, assigned: torch.Tensor) -> None:
    """tensor[index] = assigned, where tensors are in the index. PyTorch's own form leaves out the
    leading dims of `assigned` that have the size 1: those that a mask gives it may have another."""
    parts = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    basic, indices = _taken_apart(tensor, parts)
    with _torch_private.tracing_paused():
        rank = tensor[index].dim()
    for _ in range(assigned.dim() - rank):
        assigned = assigned.squeeze(0)
    view = (
        tensor
        if all(isinstance(p, slice) and p == slice(None) for p in basic)
        else tensor[tuple(basic)]
    )
    torch.ops.aten.index_put_(view, indices, assigned)


def is_put(index: Any, assigned: Any) -> bool:
    """Whether it is for `put`: it knows what stands in the index, and has something to do."""
    if not isinstance(assigned, torch.Tensor) or assigned.dim() == 0:
        return False
    parts = index if isinstance(index, tuple) else (index,)
    known = all(
        p is None or p is Ellipsis or isinstance(p, slice) or _is_number(p) or _is_index(p)
        for p in parts
    )
    if not known or not any(map(_is_index, parts)):
        return False
    with _torch_private.tracing_paused():
        return bool(assigned.shape[0] == 1)


def _is_index(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and part.dim() > 0


def _is_number(part: Any) -> bool:
    """Whether it takes one element of a dim, as a tensor without dims does as well."""
    if isinstance(part, torch.Tensor):
        return part.dim() == 0 and part.dtype not in (torch.bool, torch.uint8)
    return type(part) is int


def _taken_apart(
    tensor: torch.Tensor, parts: tuple[Any, ...]
) -> tuple[list[Any], list[torch.Tensor | None]]:
    """The index that makes a view of the tensor, and the tensors that index that view."""
    taken = sum(_dims_taken(part) for part in parts)
    rest = [slice(None)] * (tensor.dim() - taken)
    basic: list[Any] = []
    indices: list[torch.Tensor | None] = []
    for part in parts:
        if _is_index(part):
            basic += [slice(None)] * _dims_taken(part)
            indices.append(part)
        elif part is Ellipsis:
            basic += rest
            indices += [None] * len(rest)
        else:
            basic.append(part)
            indices += [] if _is_number(part) else [None]
    return basic, indices


def _dims_taken(part: Any) -> int:
    if _is_index(part):
        return int(part.dim()) if part.dtype == torch.bool else 1
    return 0 if part is None or part is Ellipsis else 1


def _is_refused(assigned: Any) -> bool:
    """Whether PyTorch takes no masks of uint8 for what is assigned: a single number."""
    if isinstance(assigned, torch.Tensor):
        with _torch_private.tracing_paused():
            return bool(assigned.numel() == 1)
    return assigned is not None


def _is_of_bytes(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype == torch.uint8
