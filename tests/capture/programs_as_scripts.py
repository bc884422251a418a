"""Models that compute something else as a script than in eager PyTorch."""

from __future__ import annotations

import torch
from torch import nn


class AsksWhetherItIsAScript(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x + 1
        if not torch.jit.is_scripting():
            x = x.clamp(max=100)
        return x


class HasUnusedMethod(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x + 1
        return self.other(x)

    @torch.jit.unused
    def other(self, x: torch.Tensor) -> torch.Tensor:
        return x * 7
