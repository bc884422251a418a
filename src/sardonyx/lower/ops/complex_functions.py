"""Complex numbers of their parts, and the parts of them."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex import arithmetic
from sardonyx.lower.complex.values import ComplexTensor, from_pairs, to_pairs
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("aten::complex")
def complex_(b: Builder, real: Tensor, imag: Tensor) -> ComplexTensor:
    dims = b.broadcast_shape(real, imag)
    if dims is None or any(d is None for d in dims):
        return ComplexTensor(b.Add(real, b.full_like(imag, 0)), b.Add(imag, b.full_like(real, 0)))
    sizes = [d for d in dims if d is not None]
    return ComplexTensor(b.expand(real, sizes), b.expand(imag, sizes))


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
