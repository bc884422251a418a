"""Shapes as tensors, for models that compute with them: recorded as what they are."""

from __future__ import annotations

import torch


def shape_as_tensor(x: torch.Tensor) -> torch.Tensor:
    """The sizes of a tensor, as a tensor of one dim."""
    shape: torch.Tensor = torch.ops.aten._shape_as_tensor(x)
    return shape


def reshape_from_tensor_shape(x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    """The tensor reshaped to the sizes that a tensor of one dim has."""
    reshaped: torch.Tensor = torch.ops.aten._reshape_from_tensor(x, shape)
    return reshaped


__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]
