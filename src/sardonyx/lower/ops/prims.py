"""PyTorch's `prims`, which its decompositions end in: ATen operators without type promotion."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.ops import arithmetic, comparison, conversion, math_functions, reduction, view
from sardonyx.lower.registry import LIBRARY, lowering
from sardonyx.lower.values import Dim, Tensor

_THEMES = (arithmetic, comparison, conversion, math_functions, reduction, view)
"""Loaded before this one, which looks their lowerings up."""

_UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp",
    "floor", "log", "neg", "round", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
_BINARY = ("add", "eq", "ge", "gt", "le", "lt", "mul", "ne", "remainder", "sub")


def _register_as(name: str, aten: str, renamed: Mapping[str, str] | None = None) -> None:
    """The lowering of an ATen operator for the prim of other names."""
    found = LIBRARY.get(f"aten::{aten}")
    assert found is not None, aten
    lowering(f"prims::{name}", renamed=renamed, **found.given)(found.function)


for _name in _UNARY:
    _register_as(_name, _name)
for _name in _BINARY:
    _register_as(_name, f"{_name}.Tensor")
_register_as("pow", "pow.Tensor_Tensor", {"other": "exponent"})
_register_as("where", "where.self", {"pred": "condition", "a": "self", "b": "other"})
_register_as("convert_element_type", "_to_copy", {"a": "self"})
_register_as("device_put", "alias", {"a": "self"})
_register_as("reshape", "reshape", {"a": "self", "shape": "size"})
_register_as("squeeze", "squeeze.dims", {"a": "self", "dimensions": "dim"})
_register_as("transpose", "permute", {"a": "self", "permutation": "dims"})


@lowering("prims::div")
def div(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    """Of integers: rounded towards zero."""
    return arithmetic.div(b, self, other, None if self.is_floating_point else "trunc")


@lowering("prims::broadcast_in_dim")
def broadcast_in_dim(
    b: Builder, a: Tensor, shape: list[Dim], broadcast_dimensions: list[int]
) -> Tensor:
    """The dims of `a` go to the given ones of the result."""
    sizes: list[Dim] = [1] * len(shape)
    for axis, place in enumerate(broadcast_dimensions):
        sizes[place] = b.dims(a)[axis]
    return b.expand(b.reshape(a, sizes), shape)


@lowering("prims::sum")
def sum_(
    b: Builder, inp: Tensor, dims: list[int] | None, output_dtype: torch.dtype | None = None
) -> Tensor:
    return reduction.total(b, inp, dims, dtype=output_dtype or inp.dtype)


@lowering("prims::var")
def var(
    b: Builder,
    inp: Tensor,
    dims: list[int] | None,
    correction: float | None = 1,
    output_dtype: torch.dtype | None = None,
) -> Tensor:
    variance, _ = reduction.spread_and_mean(b, inp, dims, correction=correction)
    return b.cast(variance, output_dtype or inp.dtype)
