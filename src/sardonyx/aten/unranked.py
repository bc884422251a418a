"""Operators on tensors whose number of dims is known at run time, which ATen does not have. Such a
tensor is its elements in a row, and its sizes."""

from __future__ import annotations

import torch

_OPERATORS = torch.library.Library("sardonyx", "FRAGMENT")  # type: ignore[no-untyped-call]
for _schema in (
    "any_rank_whole(Tensor flat, Tensor sizes) -> Tensor",
    "any_rank_expand(Tensor(a) flat, Tensor sizes, Tensor other) -> (Tensor(a), Tensor)",
):
    _OPERATORS.define(_schema)  # type: ignore[no-untyped-call]

WHOLE = torch.ops.sardonyx.any_rank_whole.default
"""The tensor itself."""
EXPAND = torch.ops.sardonyx.any_rank_expand.default
"""One that is broadcast with another tensor of these sizes: its elements, and its sizes then."""
