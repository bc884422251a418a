"""Quantized tensors and packed weights, as a recording has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from sardonyx.aten.graph import Dim, Value


@dataclass(frozen=True, slots=True)
class QuantizedTensor:
    """(integers - zero_point) * scale; both are tensors of the channels along `axis`, if any."""

    integers: Value
    scale: float | Value
    zero_point: int | Value
    dtype: torch.dtype
    axis: int | None = None

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.integers.shape


@dataclass(frozen=True, slots=True)
class PackedParameters:
    """The weight and bias of a quantized layer, in the form its kernels take."""

    name: str
    content: Any
