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


def _of_bytes(op: Any) -> Callable[..., Any]:
    """Targets may be bytes, which the rule for fake tensors does not take."""

    def loss(self: torch.Tensor, target: torch.Tensor, *options: Any, **more: Any) -> Any:
        is_bytes = target.dtype == torch.uint8
        return op(self, target.to(torch.int64) if is_bytes else target, *options, **more)

    return loss


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((aten.ctc_loss.IntList, aten.ctc_loss.Tensor), _ctc_loss),
    **{
        op: _of_bytes(op)
        for op in (
            aten.nll_loss.default,
            aten.nll_loss2d.default,
            aten.nll_loss_nd.default,
            aten.cross_entropy_loss.default,
        )
    },
}
