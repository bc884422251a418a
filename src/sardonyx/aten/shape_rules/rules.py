"""The shapes of results where PyTorch's own rules take the sizes of the example for all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx.aten.shape_rules import (
    before_2_13,
    creation,
    data_dependent,
    histogram,
    indexing,
    layers,
    linear_algebra,
    loss,
    pool,
    quantize,
    recurrent,
    reduction,
    reshape,
)
from sardonyx.aten.shape_rules import slice as slices

_THEMES = (
    before_2_13.SHAPE_RULES,
    creation.SHAPE_RULES,
    data_dependent.SHAPE_RULES,
    histogram.SHAPE_RULES,
    indexing.SHAPE_RULES,
    layers.SHAPE_RULES,
    linear_algebra.SHAPE_RULES,
    loss.SHAPE_RULES,
    pool.SHAPE_RULES,
    quantize.SHAPE_RULES,
    recurrent.SHAPE_RULES,
    reduction.SHAPE_RULES,
    reshape.SHAPE_RULES,
    slices.SHAPE_RULES,
)
SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    op: rule for theme in _THEMES for op, rule in theme.items()
}
"""By operator, a function that takes its arguments and gives results of the right shapes."""
