"""Operators on tensors whose rank is known at run time, which ATen does not have. Such a tensor is
represented by its flat elements and its sizes."""

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
"""A tensor broadcast with `other`: its flat elements, and its sizes."""
