"""What fake quantization gives: as many elements as it takes. PyTorch has no rule for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


def _like_input(self: torch.Tensor, *rest: Any) -> torch.Tensor:
    return torch.empty_like(self)


def _with_mask(self: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(self), torch.empty_like(self, dtype=torch.bool)


def _with_mask_and_state(
    self: torch.Tensor, observer_on: torch.Tensor, fake_quant_on: torch.Tensor, *rest: Any
) -> tuple[torch.Tensor, ...]:
    """The state is the range that was seen, the scale and the zero point."""
    return *_with_mask(self), *map(torch.empty_like, rest[:4])


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.fake_quantize_per_tensor_affine.default: _like_input,
    aten.fake_quantize_per_tensor_affine.tensor_qparams: _like_input,
    aten.fake_quantize_per_channel_affine.default: _like_input,
    aten.fake_quantize_per_tensor_affine_cachemask.default: _with_mask,
    aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: _with_mask,
    aten.fake_quantize_per_channel_affine_cachemask.default: _with_mask,
    aten._fake_quantize_learnable_per_tensor_affine.default: _like_input,
    aten._fake_quantize_learnable_per_channel_affine.default: _like_input,
    aten.fused_moving_avg_obs_fake_quant.default: _like_input,
    aten._fused_moving_avg_obs_fq_helper.default: _with_mask,
    aten._fused_moving_avg_obs_fq_helper_functional.default: _with_mask_and_state,
}
