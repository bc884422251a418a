"""Parameters and buffers that share memory with each other, without being the same tensor."""

from __future__ import annotations

import torch

from sardonyx.aten.graph import Value
from sardonyx.aten.storage import holds_memory
from sardonyx.functionalization.layout import strided_inside
from sardonyx.functionalization.views import Strided


def overlapping_parameters(
    values: list[Value],
) -> tuple[dict[Value, tuple[Value, Strided]], set[Value]]:
    """Parameters that lie inside another one, and those that overlap in any other way."""
    by_storage: dict[int, list[tuple[Value, torch.Tensor]]] = {}
    for value in values:
        tensor = value.constant
        if tensor is not None and tensor.numel() and holds_memory(tensor):
            key = tensor.untyped_storage().data_ptr()
            by_storage.setdefault(key, []).append((value, tensor))
    inside: dict[Value, tuple[Value, Strided]] = {}
    entangled: set[Value] = set()
    for group in by_storage.values():
        if len(group) == 1:
            continue
        whole, memory = max(group, key=lambda item: item[1].numel())
        first, end = _extent(memory)
        for value, tensor in group:
            if value is whole:
                continue
            start, stop = _extent(tensor)
            link = strided_inside(memory, tuple(tensor.shape), tensor.stride(), start - first)
            if link is None or start < first or stop > end or tensor.dtype != memory.dtype:
                entangled |= {value, whole}
            else:
                inside[value] = (whole, link)
    return inside, entangled


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    first = int(tensor.storage_offset())
    last = sum((d - 1) * s for d, s in zip(tensor.shape, tensor.stride(), strict=True))
    return first, first + last + 1
