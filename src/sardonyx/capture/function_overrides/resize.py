"""Tensors that are resized in place, as the views of their memory that they become."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch


def resize(func: Any, tensor: torch.Tensor, *size: Any, **options: Any) -> Any:
    given = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    wanted = list(options.get("size", options.get("shape", given)))
    if not _fits(tensor, wanted, options):
        return func(tensor, *size, **options)
    return _first_elements(tensor, wanted)


def resize_as(func: Any, tensor: torch.Tensor, template: torch.Tensor, **options: Any) -> Any:
    wanted = list(template.shape)
    if not _fits(tensor, wanted, options):
        return func(tensor, template, **options)
    return _first_elements(tensor, wanted)


def _fits(tensor: torch.Tensor, wanted: Sequence[Any], options: dict[str, Any]) -> bool:
    """Whether a tensor that lies in memory as it is read has that many elements."""
    has_format = options.get("memory_format") not in (None, torch.contiguous_format)
    return not has_format and tensor.is_contiguous() and bool(prod(wanted) <= tensor.numel())


def _first_elements(tensor: torch.Tensor, wanted: Sequence[Any]) -> torch.Tensor:
    strides = [prod(wanted[axis + 1 :]) for axis in range(len(wanted))]
    return tensor.as_strided_(wanted, strides, tensor.storage_offset())


RESIZE_OVERRIDES = {
    torch.Tensor.resize_: resize,
    torch.ops.aten.resize_: resize,
    torch.ops.aten.resize_.default: resize,
    torch.ops.prims.resize: resize,
    torch.ops.prims.resize.default: resize,
    torch.Tensor.resize_as_: resize_as,
    torch.resize_as_: resize_as,
}
"""By function, what does the same for it, given the function and its arguments."""
