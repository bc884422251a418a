"""Reshaped tensors have the sizes that were asked for.

x.view(-1, 4) has 4 columns: to PyTorch it has n // (n // 4), as many as are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from sardonyx import _torch_private

aten = torch.ops.aten


def _as_asked(op: Any) -> Callable[..., torch.Tensor]:
    def reshaped(self: torch.Tensor, size: Sequence[Any]) -> torch.Tensor:
        if not size and any(map(_torch_private.is_decided_by_data, self.shape)):
            # One element: PyTorch squeezes, which keeps a dim whose size may be another.
            return self.as_strided((), ())
        made: torch.Tensor = _torch_private.with_sizes_as_asked(op(self, size), size)
        return made

    return reshaped


def _unflatten(self: torch.Tensor, dim: int, sizes: Sequence[Any]) -> torch.Tensor:
    axis = dim % self.dim()
    asked = [*self.shape[:axis], *sizes, *self.shape[axis + 1 :]]
    made = aten.unflatten.int(self, dim, sizes)
    reshaped: torch.Tensor = _torch_private.with_sizes_as_asked(made, asked)
    return reshaped


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    **{
        op: _as_asked(op)
        for op in (aten.view.default, aten.reshape.default, aten._unsafe_view.default)
    },
    aten.unflatten.int: _unflatten,
}
