"""The modules of a model and the tensors they own, by path.

PyTorch's `named_modules` asks a module through all those around it, which takes time that grows
with the square of the depth; these walks are the same in order and in what comes once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def named_modules(model: Any, *, each_once: bool = True) -> Iterator[tuple[str, torch.nn.Module]]:
    """The model first, as ""; nothing of what is no module."""
    pending = [("", model)] if isinstance(model, torch.nn.Module) else []
    seen: set[int] = set()
    while pending:
        path, module = pending.pop()
        if id(module) in seen:
            continue
        if each_once:
            seen.add(id(module))
        yield path, module
        children = [
            (attribute_path(path, n), m) for n, m in module._modules.items() if m is not None
        ]
        pending += reversed(children)


def modules_of(model: Any) -> list[torch.nn.Module]:
    return [module for _, module in named_modules(model)]


def named_parameters(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    return _owned(model, "_parameters")


def named_buffers(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    return _owned(model, "_buffers")


def weights_of(model: Any) -> list[torch.Tensor]:
    return [t for _, t in (*named_parameters(model), *named_buffers(model))]


def attribute_path(module_path: str, name: str) -> str:
    return f"{module_path}.{name}" if module_path else name


def _owned(model: Any, kind: str) -> Iterator[tuple[str, torch.Tensor]]:
    seen: set[int] = set()
    for path, module in named_modules(model):
        for name, tensor in getattr(module, kind).items():
            if tensor is not None and id(tensor) not in seen:
                seen.add(id(tensor))
                yield attribute_path(path, name), tensor
