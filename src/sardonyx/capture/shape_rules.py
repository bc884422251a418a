"""The shapes of results where PyTorch's own rules take the sizes of the example for all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sardonyx.capture import (
    convolution_shapes,
    creation_shapes,
    data_dependent_shapes,
    fourier_shapes,
    histogram_shapes,
    indexing_shapes,
    linear_algebra_shapes,
    loss_shapes,
    pool_shapes,
    quantize_shapes,
    recurrent_shapes,
    reduction_shapes,
    slice_shapes,
    unguarded_shapes,
)

SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    **convolution_shapes.SHAPE_RULES,
    **creation_shapes.SHAPE_RULES,
    **data_dependent_shapes.SHAPE_RULES,
    **fourier_shapes.SHAPE_RULES,
    **indexing_shapes.SHAPE_RULES,
    **linear_algebra_shapes.SHAPE_RULES,
    **loss_shapes.SHAPE_RULES,
    **histogram_shapes.SHAPE_RULES,
    **pool_shapes.SHAPE_RULES,
    **quantize_shapes.SHAPE_RULES,
    **recurrent_shapes.SHAPE_RULES,
    **reduction_shapes.SHAPE_RULES,
    **slice_shapes.SHAPE_RULES,
    **unguarded_shapes.SHAPE_RULES,
}
"""By operator, a function with its signature that gives results of the right shapes."""
SIZES_DEPEND_ON_DATA = frozenset(
    {*data_dependent_shapes.SHAPE_RULES, *recurrent_shapes.PACKED_SEQUENCES}
)
"""Operators whose results have other sizes for other values, though PyTorch does not say so."""
