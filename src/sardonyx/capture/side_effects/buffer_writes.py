"""Buffers that `forward` assigns (`self.h = ...`), written as if it wrote them in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.module_tree import attribute_path, named_modules


class AssignedBuffers:
    """The buffers of a model before it runs; a capture records writes, and no assignments."""

    def __init__(self, model: Any) -> None:
        self._before = [
            (prefix, module, name, buffer)
            for prefix, module in named_modules(model)
            for name, buffer in module._buffers.items()
            if buffer is not None
        ]

    def assigned(self) -> list[str]:
        """The paths of those that are other tensors now."""
        return [
            attribute_path(prefix, name)
            for prefix, module, name, old in self._before
            if module._buffers.get(name) is not old
        ]

    def write(self, results: Sequence[Any]) -> tuple[list[Any], list[str]]:
        """Writes what was assigned; the results, which keep what the buffers held if they are
        those, and notes on what cannot be kept."""
        notes: list[str] = []
        olds: list[torch.Tensor] = []
        news: list[torch.Tensor] = []
        for prefix, module, name, old in self._before:
            new = module._buffers.get(name)
            if new is old:
                continue
            if new is None or not _is_alike(new, old):
                path = attribute_path(prefix, name)
                notes.append(
                    f"the model assigns to its buffer {path} what may have another shape or dtype:"
                    " the file computes the outputs with it, but does not keep it from run to run"
                )
                continue
            olds.append(old)
            news.append(new)
            module._buffers[name] = old
        if not olds:
            return list(results), notes
        memory = {_torch_private.storage_of(old) for old in olds}

        def apart(value: Any) -> Any:
            is_shared = isinstance(value, torch.Tensor) and (
                _torch_private.storage_of(value) in memory
            )
            return value.clone() if is_shared else value

        kept, written = [apart(result) for result in results], [apart(new) for new in news]
        for old, new in zip(olds, written, strict=True):
            old.copy_(new)
        return kept, notes


def _is_alike(new: torch.Tensor, old: torch.Tensor) -> bool:
    sizes: list[Any] = [*new.shape, *old.shape]
    # A symbolic size is not compared: that would specialize it.
    return (
        (new.dtype, new.device) == (old.dtype, old.device)
        and not any(isinstance(size, torch.SymInt) for size in sizes)
        and new.shape == old.shape
    )
