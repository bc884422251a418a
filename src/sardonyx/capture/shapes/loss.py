"""The shapes of losses whose own kernels look at the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
_NO_REDUCTION = 0


def _ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> torch.Tensor:
    has_batch = reduction == _NO_REDUCTION and log_probs.dim() == 3
    return log_probs.new_empty([log_probs.shape[1]] if has_batch else [])


SHAPE_RULES: dict[Any, Callable[..., Any]] = dict.fromkeys(
    (aten.ctc_loss.IntList, aten.ctc_loss.Tensor), _ctc_loss
)
