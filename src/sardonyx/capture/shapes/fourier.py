"""The length of a signal that is put together again from its short-time transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _istft(
    self: torch.Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: torch.Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | torch.SymInt | None = None,
    return_complex: bool = False,
) -> torch.Tensor:
    if length is None:
        step = n_fft // 4 if hop_length is None else hop_length
        length = n_fft + step * (self.shape[-1] - 1) - (2 * (n_fft // 2) if center else 0)
    dtype = self.dtype if return_complex else self.dtype.to_real()
    return self.new_empty([*self.shape[:-2], length], dtype=dtype)


SHAPE_RULES: dict[Any, Callable[..., Any]] = {torch.ops.aten.istft.default: _istft}
