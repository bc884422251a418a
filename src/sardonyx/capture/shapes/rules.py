"""The shapes of results where PyTorch's own rules take the sizes of the example for all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx.capture.shapes import (
    attention,
    before_2_13,
    convolution,
    creation,
    data_dependent,
    fourier,
    histogram,
    indexing,
    linear_algebra,
    loss,
    pool,
    quantize,
    recurrent,
    reduction,
    reshape,
    unguarded,
)
from sardonyx.capture.shapes import (
    slice as slices,
)

SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    **before_2_13.SHAPE_RULES,
    **convolution.SHAPE_RULES,
    **creation.SHAPE_RULES,
    **data_dependent.SHAPE_RULES,
    **fourier.SHAPE_RULES,
    **indexing.SHAPE_RULES,
    **linear_algebra.SHAPE_RULES,
    **loss.SHAPE_RULES,
    **histogram.SHAPE_RULES,
    **pool.SHAPE_RULES,
    **quantize.SHAPE_RULES,
    **recurrent.SHAPE_RULES,
    **reduction.SHAPE_RULES,
    **reshape.SHAPE_RULES,
    **slices.SHAPE_RULES,
    **unguarded.SHAPE_RULES,
}
"""By operator, a function with its signature that gives results of the right shapes."""
RULES_OF_INFERENCE: dict[Any, Callable[..., Any]] = {**SHAPE_RULES, **attention.SHAPE_RULES}
"""With those that ask the operator itself, and so cannot stand for it in torch.export."""
