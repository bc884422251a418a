"""Tensors that are resized in place, as the views of their memory that they become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch


def resize(func: Any, tensor: torch.Tensor, *size: Any, **options: Any) -> Any:
    given = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    wanted = list(options.get("size", options.get("shape", given)))
    return _resized(wanted, func, tensor, *size, **options)


def resize_as(func: Any, tensor: torch.Tensor, template: torch.Tensor, **options: Any) -> Any:
    return _resized(list(template.shape), func, tensor, template, **options)


def _resized(
    wanted: Sequence[Any], func: Any, tensor: torch.Tensor, *args: Any, **options: Any
) -> Any:
    """The first elements, where the tensor lies in memory as it is read and has that many."""
    has_format = options.get("memory_format") not in (None, torch.contiguous_format)
    if has_format or not tensor.is_contiguous() or not prod(wanted) <= tensor.numel():
        return func(tensor, *args, **options)
    strides = [prod(wanted[axis + 1 :]) for axis in range(len(wanted))]
    return tensor.as_strided_(wanted, strides, tensor.storage_offset())


_aten, _prims = torch.ops.aten, torch.ops.prims
RESIZE_OVERRIDES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((torch.Tensor.resize_, _aten.resize_, _aten.resize_.default), resize),
    **dict.fromkeys((_prims.resize, _prims.resize.default), resize),
    **dict.fromkeys((torch.Tensor.resize_as_, torch.resize_as_), resize_as),
}
"""By function, what does the same for it, given the function and its arguments."""
