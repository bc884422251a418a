"""Quantized tensors and packed weights, as a recording has them; those among the arguments of a
call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from sardonyx.aten.graph import Argument, Dim, Value
from sardonyx.aten.pytree import leaves_in


@dataclass(frozen=True, slots=True)
class QuantizedTensor:
    """(integers - zero_point) * scale; both are tensors of the channels along `axis`, if any."""

    integers: Value
    scale: float | Value
    zero_point: int | Value
    dtype: torch.dtype
    axis: int | None = None

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.integers.shape


@dataclass(frozen=True, slots=True)
class PackedParameters:
    """The weight and bias of a quantized layer, in the form its kernels take."""

    name: str
    content: Any


def quantized_in(argument: Argument) -> Iterator[QuantizedTensor]:
    return (leaf for leaf in leaves_in(argument) if isinstance(leaf, QuantizedTensor))


def has_computed_grid(x: QuantizedTensor) -> bool:
    return isinstance(x.scale, Value) or isinstance(x.zero_point, Value)


def computed_grids(
    arguments: dict[str, Argument],
) -> list[tuple[float | Value, int | Value]]:
    """The scales and zero points among the arguments that are computed, each once."""
    found: list[tuple[float | Value, int | Value]] = []
    for x in quantized_in(list(arguments.values())):
        if has_computed_grid(x) and (x.scale, x.zero_point) not in found:
            found.append((x.scale, x.zero_point))
    return found


def is_static(argument: Argument) -> bool:
    """Whether no size in it is computed."""
    if isinstance(argument, list):
        return all(map(is_static, argument))
    if isinstance(argument, (QuantizedTensor, Value)):
        return all(isinstance(d, int) for d in argument.shape)
    return not isinstance(argument, sympy.Basic)


def integers(argument: Argument) -> Argument:
    if isinstance(argument, list):
        return [integers(item) for item in argument]
    return argument.integers if isinstance(argument, QuantizedTensor) else argument


MOVES_ELEMENTS = frozenset(
    f"aten::{name}"
    for name in (
        "T", "alias", "channel_shuffle", "chunk", "clone", "contiguous", "detach", "diagonal",
        "expand", "expand_as", "flatten", "flip", "gather", "index", "index_select", "lift_fresh",
        "mT", "movedim", "narrow", "numpy_T", "permute", "pixel_shuffle", "pixel_unshuffle",
        "repeat", "reshape", "reshape_as", "roll", "select", "slice", "split",
        "split_with_sizes", "squeeze", "swapaxes", "swapdims", "t", "tensor_split", "transpose",
        "unbind", "unflatten", "unfold", "unsqueeze", "view", "view_as",
    )
)  # fmt: skip
"""Operators that compute nothing: they do with integers what they do with numbers."""


def quantization_step(output: Argument) -> float:
    """The distance of neighbouring values of an output, 0 where it is not quantized; of integers it
    is 1."""
    node = output.producer if isinstance(output, Value) else None
    while node is not None and node.op._schema.name in MOVES_ELEMENTS:
        source = next((a for a in node.arguments.values() if isinstance(a, Value)), None)
        node = None if source is None else source.producer
    if node is None or node.op.namespace != "quantized_decomposed":
        return 0.0
    if node.op._schema.name.startswith("quantized_decomposed::quantize"):
        return 1.0
    scale = node.arguments.get("scale")
    if isinstance(scale, Value) and scale.constant is not None and scale.constant.numel() == 1:
        scale = scale.constant.item()  # a buffer of the model's
    return scale if isinstance(scale, float) else 0.0
