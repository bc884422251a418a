"""PyTorch's `prims`, which its decompositions end in: ATen operators without type promotion."""

from __future__ import annotations

from typing import Any

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.ops import (
    arithmetic,
    comparison,
    conversion,
    math_functions,
    reduction,
    view,
)
from sardonyx.lower.registry import LIBRARY, lowering
from sardonyx.lower.values import Dim, Tensor

_THEMES = (arithmetic, comparison, conversion, math_functions, reduction, view)
"""Loaded before this one, which looks their lowerings up."""

_UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp",
    "floor", "log", "neg", "round", "sin", "sinh", "sqrt", "tan", "tanh",
)  # fmt: skip
_BINARY = {
    "add": "add.Tensor",
    "eq": "eq.Tensor",
    "ge": "ge.Tensor",
    "gt": "gt.Tensor",
    "le": "le.Tensor",
    "lt": "lt.Tensor",
    "mul": "mul.Tensor",
    "ne": "ne.Tensor",
    "pow": "pow.Tensor_Tensor",
    "remainder": "remainder.Tensor",
    "sub": "sub.Tensor",
}


def _aten(b: Builder, name: str, *arguments: Any, **more: Any) -> Tensor:
    found = LIBRARY.get(f"aten::{name}")
    assert found is not None, name
    result: Tensor = found.function(b, *arguments, **more)
    return result


def _register_unary(name: str) -> None:
    @lowering(f"prims::{name}")
    def unary(b: Builder, self: Tensor) -> Tensor:
        return _aten(b, name, self)


def _register_binary(name: str, overload: str) -> None:
    @lowering(f"prims::{name}")
    def binary(b: Builder, self: Tensor, other: Tensor) -> Tensor:
        return _aten(b, overload, self, other)


for _name in _UNARY:
    _register_unary(_name)
for _name, _overload in _BINARY.items():
    _register_binary(_name, _overload)


@lowering("prims::div")
def div(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    """Of integers: rounded towards zero."""
    mode = None if self.is_floating_point else "trunc"
    return _aten(b, "div.Tensor_mode", self, other, mode)


@lowering("prims::where")
def where(b: Builder, pred: Tensor, a: Tensor, b_: Tensor) -> Tensor:
    return _aten(b, "where.self", pred, a, b_)


@lowering("prims::convert_element_type")
def convert_element_type(b: Builder, a: Tensor, dtype: torch.dtype) -> Tensor:
    return _aten(b, "_to_copy", a, dtype)


@lowering("prims::device_put")
def device_put(b: Builder, a: Tensor) -> Tensor:
    return a


@lowering("prims::reshape")
def reshape(b: Builder, a: Tensor, shape: list[Dim]) -> Tensor:
    return b.reshape(a, shape)


@lowering("prims::squeeze")
def squeeze(b: Builder, a: Tensor, dimensions: list[int]) -> Tensor:
    return b.squeeze(a, dimensions)


@lowering("prims::transpose")
def transpose(b: Builder, a: Tensor, permutation: list[int]) -> Tensor:
    return b.Transpose(a, perm=permutation)


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
    return _aten(b, "sum.dim_IntList", inp, dims, dtype=output_dtype or inp.dtype)


@lowering("prims::var")
def var(
    b: Builder,
    inp: Tensor,
    dims: list[int] | None,
    correction: float | None = 1,
    output_dtype: torch.dtype | None = None,
) -> Tensor:
    result = _aten(b, "var.correction", inp, dims, correction=correction)
    return b.cast(result, output_dtype or inp.dtype)
