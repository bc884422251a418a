"""Scales of `Resize`, as symbolic functions of `aten::upsample_*` ask for them; under the names
that they know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.values import SymbolicValue


def _get_interpolate_attributes(g: GraphContext, mode: str, args: Sequence[Any]) -> tuple[Any, Any]:
    """The scales, and `align_corners`, of what follows `output_size` in a call."""
    if mode == "nearest":
        return _interpolate_get_scales_if_available(g, args), None
    return _interpolate_get_scales_if_available(g, args[1:]), args[0]


def _interpolate_get_scales_if_available(
    g: GraphContext, scales: Sequence[Any]
) -> SymbolicValue | None:
    """A scale for each dim of an image with its batch and channels; None where sizes are given.

    `scales` is a list of them, or one argument each."""
    numbers: list[float] = []
    for given in scales:
        held = given.content if isinstance(given, SymbolicValue) else given
        for item in held if isinstance(held, (list, tuple)) else [held]:
            number = item.content if isinstance(item, SymbolicValue) else item
            if not isinstance(number, (int, float)):
                return None
            numbers.append(float(number))
    if not numbers:
        return None
    return g.op("Constant", value_t=torch.tensor([1.0, 1.0, *numbers]))


def _interpolate_get_scales(g: GraphContext, factor: Any, rank: int) -> SymbolicValue:
    """The scales of a tensor of `rank` dims, by one factor or one for each dim of the image."""
    held = factor.content if isinstance(factor, SymbolicValue) else factor
    if isinstance(held, (list, tuple)):
        known = _interpolate_get_scales_if_available(g, [held])
        if known is not None:
            return known
    scale = g.op("Reshape", g.op("Cast", factor, to_i=1), torch.tensor([-1]))
    if scale.type().sizes() == [1]:
        scale = g.op("Expand", scale, torch.tensor([rank - 2]))
    return g.op("Concat", torch.ones(2), scale, axis_i=0)


def _interpolate_size_to_scales(
    g: GraphContext, input: Any, output_size: Any, rank: int
) -> SymbolicValue:
    """The scales that bring the image of a tensor of `rank` dims to the sizes."""
    wanted = g.op("Reshape", g.op("Cast", output_size, to_i=1), torch.tensor([-1]))
    sizes = g.op("Slice", g.op("Shape", input), torch.tensor([2]), torch.tensor([rank]))
    ratios = g.op("Div", wanted, g.op("Cast", sizes, to_i=1))
    return g.op("Concat", torch.ones(2), ratios, axis_i=0)
