"""The operators of Hugging Face's transformers: mixtures of experts."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.ops.grouped_matmul import grouped_mm
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("transformers::grouped_mm_fallback")
def grouped_mm_fallback(b: Builder, input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
    """What models call where PyTorch's own operator has no compiled form."""
    return grouped_mm(b, input, weight, offs)
