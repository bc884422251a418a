"""Fake tensors: sizes, strides and dtypes without values."""

from __future__ import annotations

from typing import Any

import torch

HOLD_FAKES = ("torch._subclasses", "torch.fx")
"""Modules of PyTorch whose objects refer to fake tensors and symbolic numbers."""


def is_fake(value: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor)


def fake_mode_of(tensor: Any) -> Any:
    """The mode a fake tensor belongs to; None for any other tensor."""
    return tensor.fake_mode if is_fake(tensor) else None


def fake_from_sizes(
    mode: Any, sizes: list[Any], dtype: torch.dtype, device: torch.device | None = None
) -> torch.Tensor:
    with mode:
        return torch.empty(sizes, dtype=dtype, device=device)


def fake_with_strides_of(mode: Any, like: torch.Tensor) -> torch.Tensor:
    sizes, strides = list(like.shape), list(like.stride())
    with mode:
        return torch.empty_strided(sizes, strides, dtype=like.dtype, device=like.device)


def active_fake_mode() -> Any:
    """The fake mode that a running torch.export uses; None outside of one."""
    from torch._guards import detect_fake_mode

    return detect_fake_mode()
