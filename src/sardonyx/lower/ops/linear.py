"""Matrix products and what is built on them."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("aten::linear")
def linear(b: Builder, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if input.rank == 2 and weight.rank == 2:
        result: Tensor = b.Gemm(input, weight, bias, transB=1)
        return result
    perm = [1, 0] if weight.rank == 2 else [0]
    result = b.MatMul(input, b.transpose(weight, perm))
    return result if bias is None else b.Add(result, bias)
