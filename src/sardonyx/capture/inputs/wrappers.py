"""Modules around a model that change how it runs, not what it computes."""

from __future__ import annotations

from typing import Any

import torch


def unwrapped(model: Any) -> Any:
    """The model that the user wrote: the argument names of its forward and of its weights are known
    there."""
    if isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        return unwrapped(model.module)
    if isinstance(model, torch.nn.Module) and "_orig_mod" in model._modules:  # torch.compile
        return unwrapped(model._modules["_orig_mod"])
    return model
