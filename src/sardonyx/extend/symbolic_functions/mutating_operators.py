"""Forms of operators that are others by the time a form is looked for, because they write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from sardonyx.aten.graph import Node
from sardonyx.lower.custom_lowerings import Call, CustomForm
from sardonyx.lower.values import Tensor

_BATCH_NORM = "aten::batch_norm"
_WITH_STATISTICS = "aten::_native_batch_norm_legit_functional"
"""What it becomes in training, where it updates the running statistics."""


def with_training(forms: Mapping[str, CustomForm]) -> dict[str, CustomForm]:
    """The forms, and those that one of `aten::batch_norm` stands for in training."""
    form = forms.get(_BATCH_NORM)
    return dict(forms) if form is None else {_WITH_STATISTICS: _in_training(form), **forms}


def _in_training(form: CustomForm) -> CustomForm:
    def written(call: Call) -> list[Tensor | None]:
        others = {"cudnn_enabled": False}
        node = Node(
            torch.ops.aten.batch_norm.default,
            {**call.node.arguments, **others},
            [],
            call.node.location,
        )
        node.outputs = call.node.outputs[:1]
        result = form(replace(call, node=node, arguments={**call.arguments, **others}))
        statistics = [None] * (len(call.node.outputs) - 1)  # which the form does not give
        return [*result, *statistics]

    return written
