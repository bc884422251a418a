"""What models of transformers need, as small modules: the package is not installed here."""

from __future__ import annotations

from functools import cache

import torch
from torch import nn

import sardonyx


@cache
def declare_grouped_mm() -> None:
    library = torch.library.Library("transformers", "FRAGMENT")
    library.define("grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor")
    globals()["_LIBRARY"] = library

    def product(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        out, start = input.new_zeros(input.shape[0], weight.shape[2]), 0
        for i, end in enumerate(offs.tolist()):
            out[start:end] = input[start:end] @ weight[i]
            start = end
        return out

    def shape(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        return input.new_empty(input.shape[0], weight.shape[2])

    library.impl("grouped_mm_fallback", product, "CPU")
    library.impl("grouped_mm_fallback", shape, "Meta")


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(3, 4, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        expert, order = (x[:, 0] * 3).long().clamp(max=2).sort(stable=True)
        ends = (expert[None] == torch.arange(3)[:, None]).sum(1).cumsum(0)
        return torch.ops.transformers.grouped_mm_fallback(x[order], self.weight, ends)


def test_grouped_products() -> None:
    declare_grouped_mm()
    sardonyx.export(Experts(), (torch.rand(6, 4),), dynamic_shapes=({0: "tokens"},), verify=True)
