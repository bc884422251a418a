"""Masks in index expressions, in forms that can be recorded."""

from __future__ import annotations

from typing import Any

import torch


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


def _is_refused(assigned: Any) -> bool:
    """Whether PyTorch takes no masks of uint8 for what is assigned: a single number."""
    if isinstance(assigned, torch.Tensor):
        return bool(assigned.numel() == 1)
    return assigned is not None


def _is_of_bytes(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype == torch.uint8
