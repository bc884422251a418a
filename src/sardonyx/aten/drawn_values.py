"""Values like those of an example tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def drawn_like(
    example: torch.Tensor, shape: Sequence[int], generator: torch.Generator
) -> torch.Tensor:
    """A tensor of `shape` with values a model that takes `example` can be expected to take.

    Integers stay within the example's range, since they may be indices; floats keep its spread,
    and are not negative where it has no negative value.
    """
    dtype = example.dtype
    if dtype == torch.bool:
        drawn = torch.rand(shape, generator=generator) < 0.5
    elif dtype.is_complex:
        spread = _spread(torch.view_as_real(example.detach().resolve_conj()))
        parts = [torch.randn(shape, generator=generator) * spread for _ in range(2)]
        drawn = torch.complex(parts[0], parts[1])
    elif dtype.is_floating_point:
        values = example.detach().cpu().to(torch.float64)
        values = values[values.isfinite()]
        low, high = (float(values.min()), float(values.max())) if values.numel() else (-1.0, 1.0)
        if low < 0:
            drawn = torch.randn(shape, generator=generator) * _spread(values)
        else:
            low, high = (low, high) if low < high else (0.0, 2 * low or 1.0)
            drawn = torch.rand(shape, generator=generator) * (high - low) + low
    else:
        values = example.detach().cpu().to(torch.int64)
        low, high = (int(values.min()), int(values.max())) if values.numel() else (0, 0)
        drawn = torch.full(tuple(shape), low)
        if low < high:
            end = min(high + 1, torch.iinfo(torch.int64).max)
            drawn = torch.randint(low, end, tuple(shape), generator=generator)
    drawn = drawn.to(dtype).to(example.device)
    # The example's strides too: a model may read its memory.
    same_shape = tuple(shape) == tuple(example.shape)
    return torch.empty_like(example.detach()).copy_(drawn) if same_shape else drawn


def _spread(values: torch.Tensor) -> float:
    values = values.to(torch.float64)
    spread = float(values.std()) if values.numel() > 1 else 0.0
    return spread if spread > 0 else 1.0
