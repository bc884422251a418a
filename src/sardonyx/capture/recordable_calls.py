"""Calls that torch.jit.trace has no record for, made by ones it has."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_FILL_POSITIONS = {
    "_unsafe_masked_index": 3,
    "constant_pad_nd": 2,
    "fill": 1,
    "fill_": 1,
    "full": 1,
    "full_like": 1,
    "index_fill": 3,
    "index_fill_": 3,
    "masked_fill": 2,
    "masked_fill_": 2,
    "new_full": 2,
    "pad": 3,
}
"""Where the number stands that fills a tensor of known dtype."""
_NUMBERS = ("alpha", "beta", "fill_value", "value")
"""Keyword arguments that are numbers."""


class RecordableCalls(TorchFunctionMode):
    """A Python bool that is taken for a number is given as one: a trace has no type for it. And
    the lists of numbers that `torch.gradient` takes are given one by one."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.gradient and _has_numbers(kwargs.get("spacing")):
            return _gradient_by_dim(*args, **kwargs)
        if func is torch.fill and "value" in kwargs:
            args, kwargs = (*args, kwargs["value"]), {}
        name = getattr(func, "__name__", "")
        if name not in _FILL_POSITIONS and not kwargs.keys() & _NUMBERS:
            return func(*args, **kwargs)
        position = _FILL_POSITIONS.get(name, len(args))
        given = args[position : position + 1]
        number = [int(g) if isinstance(g, bool) else g for g in given]
        changed: dict[str, Any] = {
            k: int(kwargs[k]) for k in _NUMBERS if isinstance(kwargs.get(k), bool)
        }
        filled = kwargs.get("fill_value", next(iter(given), None))
        if name == "full" and kwargs.get("dtype") is None and isinstance(filled, bool):
            changed["dtype"] = torch.bool
        if func is torch.fill and number and not isinstance(number[0], torch.Tensor):
            func = torch.full_like  # as which it is recorded, but without all arguments
        return func(*args[:position], *number, *args[position + 1 :], **{**kwargs, **changed})


def _has_numbers(spacing: Any) -> bool:
    return isinstance(spacing, (list, tuple)) and not isinstance(
        next(iter(spacing), None), torch.Tensor
    )


def _gradient_by_dim(
    input: torch.Tensor, *, spacing: Any, dim: Any = None, edge_order: int = 1
) -> tuple[torch.Tensor, ...]:
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    return tuple(
        torch.gradient(input, spacing=step, dim=axis, edge_order=edge_order)[0]
        for step, axis in zip(spacing, dims, strict=True)
    )
