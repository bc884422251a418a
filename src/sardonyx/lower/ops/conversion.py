"""Conversions of dtype, copies, and what is neither: operators that only move memory."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import conjugate, converted, real_part
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor

SAME_VALUES = (
    "alias",
    "alias_copy",
    "clone",
    "contiguous",
    "data",
    "detach",
    "detach_copy",
    "lift",
    "lift_fresh",
    "lift_fresh_copy",
    "pin_memory",
    "positive",
    "resolve_conj",
    "resolve_neg",
    "_lazy_clone",
)


@lowering(*(f"aten::{name}" for name in SAME_VALUES))
def same_values(b: Builder, self: Tensor) -> Tensor:
    return self


@lowering("aten::real")
def real(b: Builder, self: Tensor) -> Tensor:
    return real_part(self)


@lowering(
    "aten::conj", "aten::_conj", "aten::_conj_copy", "aten::conj_physical", "aten::_conj_physical"
)
def conj(b: Builder, self: Tensor) -> Tensor:
    return conjugate(b, self)


@lowering("aten::_cast_Byte", dtype=torch.uint8)
@lowering("aten::_cast_Char", dtype=torch.int8)
@lowering("aten::_cast_Double", dtype=torch.float64)
@lowering("aten::_cast_Float", dtype=torch.float32)
@lowering("aten::_cast_Half", dtype=torch.float16)
@lowering("aten::_cast_Int", dtype=torch.int32)
@lowering("aten::_cast_Long", dtype=torch.int64)
@lowering("aten::_cast_Short", dtype=torch.int16)
@lowering("aten::to.dtype", "aten::to.dtype_layout", "aten::to.device", "aten::_to_copy")
def to(b: Builder, self: Tensor, dtype: torch.dtype | None = None, copy: bool = False) -> Tensor:
    return converted(b, self, dtype)


@lowering("aten::to.other", "aten::type_as")
def to_other(b: Builder, self: Tensor, other: Tensor, copy: bool = False) -> Tensor:
    return converted(b, self, other.dtype)


# -- overwriting -------------------------------------------------------------------------------


@lowering("aten::copy")
def copy(b: Builder, self: Tensor, src: Tensor) -> Tensor:
    """`src` as `self` would hold it after a copy."""
    return b.expand(converted(b, src, self.dtype), b.dims(self))


@lowering("aten::fill.Scalar", "aten::fill.Tensor")
@lowering("aten::zero", value=0)
def fill(b: Builder, self: Tensor, value: Tensor | Scalar) -> Tensor:
    return b.full_like(self, value)
