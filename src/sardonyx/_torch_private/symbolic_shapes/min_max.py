"""max and min of sizes, in a separate file: their guards are attributed to their callers."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import torch

_LARGEST, _SMALLEST = builtins.max, builtins.min
_SIZES = (torch.SymInt, torch.SymFloat)


def largest_of_sizes(for_tensors: Callable[..., Any]) -> Callable[..., Any]:
    """max, of any number of sizes; torch.export records that of two integers only."""
    return _extreme(_LARGEST, torch.sym_max, for_tensors)


def smallest_of_sizes(for_tensors: Callable[..., Any]) -> Callable[..., Any]:
    return _extreme(_SMALLEST, torch.sym_min, for_tensors)


def _extreme(
    plain: Callable[..., Any], of_two: Callable[..., Any], for_tensors: Callable[..., Any]
) -> Callable[..., Any]:
    def extreme(*values: Any, **options: Any) -> Any:
        if len(values) == 1 and options.keys() == {"default"}:
            values = (tuple(values[0]),)
            return extreme(*values) if values[0] else options["default"]
        if options or not values:
            return (plain if options else for_tensors)(*values, **options)
        if isinstance(values[0], torch.Tensor):
            # Of the rows of one tensor it is Python's own, which asks for their values.
            return (for_tensors if len(values) > 1 else plain)(*values)
        if len(values) == 1:
            if not isinstance(values[0], Iterable):
                return plain(values[0])
            values = tuple(values[0])
        if any(isinstance(value, torch.Tensor) for value in values):
            return for_tensors(values)
        is_size = [isinstance(value, _SIZES) for value in values]
        if any(is_size) and all(isinstance(v, (int, float, *_SIZES)) for v in values):
            return reduce(of_two, values)
        return plain(values)

    return extreme
