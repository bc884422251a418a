"""Products, running products and spreads of complex numbers."""

from __future__ import annotations

import torch

from sardonyx.lower import complex_arithmetic as arithmetic
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_values import ComplexTensor
from sardonyx.lower.ops import cumulative, reduction
from sardonyx.lower.registry import complex_lowering
from sardonyx.lower.values import Ints, Tensor


def _in(b: Builder, x: ComplexTensor | Tensor, dtype: torch.dtype | None) -> ComplexTensor:
    (part,) = arithmetic.promoted(b, x, dtype=dtype or x.dtype)
    return arithmetic.whole(b, part)


# Lengths are multiplied and angles added: nothing is lost where a factor is zero.


@complex_lowering("aten::prod", "aten::prod.dim_int")
def prod(
    b: Builder,
    self: ComplexTensor | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> ComplexTensor:
    z = _in(b, self, dtype)
    length = reduction.prod(b, arithmetic.magnitude(b, z), dim, keepdim)
    over = None if dim is None else [dim]
    return arithmetic.polar(b, length, reduction.sum_(b, arithmetic.phase(b, z), over, keepdim))


@complex_lowering("aten::cumprod")
def cumprod(
    b: Builder, self: ComplexTensor | Tensor, dim: int, *, dtype: torch.dtype | None = None
) -> ComplexTensor:
    z = _in(b, self, dtype)
    length = cumulative.cumprod(b, arithmetic.magnitude(b, z), dim)
    return arithmetic.polar(b, length, cumulative.cumsum(b, arithmetic.phase(b, z), dim))


@complex_lowering("aten::var_mean", "aten::var_mean.dim", "aten::var_mean.correction")
def var_mean(
    b: Builder,
    self: ComplexTensor,
    dim: Ints | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, ComplexTensor]:
    (real, mean), (imag, other_mean) = (
        reduction.var_mean(b, part, dim, unbiased, keepdim, correction=correction)
        for part in (self.real, self.imag)
    )
    return b.Add(real, imag), ComplexTensor(mean, other_mean)


@complex_lowering("aten::std_mean", "aten::std_mean.dim", "aten::std_mean.correction")
def std_mean(
    b: Builder,
    self: ComplexTensor,
    dim: Ints | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, ComplexTensor]:
    variance, mean = var_mean(b, self, dim, unbiased, keepdim, correction=correction)
    return b.Sqrt(variance), mean


@complex_lowering("aten::var", "aten::var.dim", "aten::var.correction")
def var(
    b: Builder,
    self: ComplexTensor,
    dim: Ints | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    return var_mean(b, self, dim, unbiased, keepdim, correction=correction)[0]


@complex_lowering("aten::std", "aten::std.dim", "aten::std.correction")
def std(
    b: Builder,
    self: ComplexTensor,
    dim: Ints | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    return b.Sqrt(var(b, self, dim, unbiased, keepdim, correction=correction))
