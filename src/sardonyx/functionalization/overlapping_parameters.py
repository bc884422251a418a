"""Parameters and buffers that share memory with each other, without being the same tensor."""

from __future__ import annotations

from sardonyx.aten.graph import Value
from sardonyx.aten.storage import holds_memory


def overlapping_parameters(values: list[Value]) -> set[Value]:
    placed = []
    for value in values:
        tensor = value.constant
        if tensor is not None and tensor.numel() and holds_memory(tensor):
            axes = zip(tensor.shape, tensor.stride(), strict=True)
            end = tensor.data_ptr() + tensor.itemsize * (1 + sum((d - 1) * s for d, s in axes))
            placed.append((tensor.data_ptr(), end, value))
    placed.sort(key=lambda place: place[:2])
    found: set[Value] = set()
    group: list[Value] = []
    reached = 0
    for start, end, value in placed:
        if start >= reached:
            group = []
        group.append(value)
        if len(group) > 1:
            found.update(group[-2:])
        reached = max(reached, end)
    return found
