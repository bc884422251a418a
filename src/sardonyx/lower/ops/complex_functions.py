"""Complex numbers of their parts, and the parts of them."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex import arithmetic
from sardonyx.lower.complex.values import ComplexTensor, from_pairs, to_pairs
from sardonyx.lower.kernels.axes import alike
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("aten::complex")
def complex_(b: Builder, real: Tensor, imag: Tensor) -> ComplexTensor:
    return ComplexTensor(*alike(b, real, imag))


@lowering("aten::polar")
def polar(b: Builder, abs: Tensor, angle: Tensor) -> ComplexTensor:
    return arithmetic.polar(b, abs, angle)


@lowering("aten::view_as_real", "aten::view_as_real_copy")
def view_as_real(b: Builder, self: ComplexTensor) -> Tensor:
    return to_pairs(b, self)


@lowering("aten::view_as_complex", "aten::view_as_complex_copy")
def view_as_complex(b: Builder, self: Tensor) -> ComplexTensor:
    return from_pairs(b, self)


@lowering("aten::imag")
def imag(b: Builder, self: ComplexTensor) -> Tensor:
    return self.imag
