"""Activations: the functions between the layers of a network."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("aten::relu")
def relu(b: Builder, self: Tensor) -> Tensor:
    result: Tensor = b.Relu(self)
    return result
