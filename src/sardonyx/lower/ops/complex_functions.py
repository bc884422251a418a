"""Complex numbers of their parts, and functions that would lose digits in the form for reals."""

from __future__ import annotations

from sardonyx.lower import complex_arithmetic as arithmetic
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_values import ComplexTensor, from_pairs, to_pairs
from sardonyx.lower.ops import random
from sardonyx.lower.registry import complex_lowering
from sardonyx.lower.values import Tensor


@complex_lowering("aten::complex")
def complex_(b: Builder, real: Tensor, imag: Tensor) -> ComplexTensor:
    dims = b.broadcast_shape(real, imag)
    if dims is None or any(d is None for d in dims):
        return ComplexTensor(b.Add(real, b.zeros_like(imag)), b.Add(imag, b.zeros_like(real)))
    sizes = [d for d in dims if d is not None]
    return ComplexTensor(b.expand(real, sizes), b.expand(imag, sizes))


@complex_lowering("aten::polar")
def polar(b: Builder, abs: Tensor, angle: Tensor) -> ComplexTensor:
    return arithmetic.polar(b, abs, angle)


@complex_lowering("aten::view_as_real", "aten::view_as_real_copy")
def view_as_real(b: Builder, self: ComplexTensor) -> Tensor:
    return to_pairs(b, self)


@complex_lowering("aten::view_as_complex", "aten::view_as_complex_copy")
def view_as_complex(b: Builder, self: Tensor) -> ComplexTensor:
    return from_pairs(b, self)


@complex_lowering("aten::imag")
def imag(b: Builder, self: ComplexTensor) -> Tensor:
    return self.imag


@complex_lowering("aten::isreal")
def isreal(b: Builder, self: ComplexTensor) -> Tensor:
    return b.Equal(self.imag, 0)


@complex_lowering("aten::expm1", "aten::special_expm1")
def expm1(b: Builder, self: ComplexTensor) -> ComplexTensor:
    return arithmetic.expm1(b, self)


@complex_lowering("aten::log1p", "aten::special_log1p")
def log1p(b: Builder, self: ComplexTensor) -> ComplexTensor:
    return arithmetic.log1p(b, self)


@complex_lowering("aten::normal_functional")
def normal_functional(
    b: Builder, self: ComplexTensor, mean: float = 0.0, std: float = 1.0
) -> ComplexTensor:
    """Each part has half of the variance."""
    parts = (random.normal_functional(b, x, mean, std * 0.5**0.5) for x in (self.real, self.imag))
    return ComplexTensor(*parts)
