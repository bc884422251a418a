"""The shapes of results where PyTorch's own rules take the sizes of the example for all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx.aten.shape_rules import (
    before_2_13,
    creation,
    data_dependent,
    indexing,
    layers,
    linear_algebra,
    reduction,
)

_THEMES = (before_2_13, creation, data_dependent, indexing, layers, linear_algebra, reduction)
SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    op: rule for theme in _THEMES for op, rule in theme.SHAPE_RULES.items()
}
"""By operator, a function that takes its arguments and gives results of the right shapes."""
