"""Which tensors of a model require gradients: exports work on tensors that do not say it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch

from sardonyx.aten.graph import Value
from sardonyx.aten.module_tree import named_parameters


def trainable_parameters(model: Any) -> frozenset[str]:
    is_program = isinstance(model, torch.export.ExportedProgram)
    parameters = model.named_parameters() if is_program else named_parameters(model)
    return frozenset(name for name, tensor in parameters if tensor.requires_grad)


def requires_grad(
    value: Value, parameters: Mapping[str, Value], trainable: Collection[str]
) -> bool:
    """Whether a value is a trainable parameter or computed of one."""
    sources = {id(v) for name, v in parameters.items() if name in trainable}
    pending, seen = [value], set()
    while pending and sources:
        reached = pending.pop()
        if id(reached) in seen or not reached.dtype.is_floating_point:
            continue
        if id(reached) in sources:
            return True
        seen.add(id(reached))
        if reached.producer is not None:
            pending += reached.producer.inputs()
    return False
