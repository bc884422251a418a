"""Matrix products of complex numbers beside those of the table of bilinear operators."""

from __future__ import annotations

from functools import partial

from sardonyx.lower import complex_arithmetic as arithmetic
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_values import ComplexTensor, Operand
from sardonyx.lower.contraction import matmul
from sardonyx.lower.ops.linear import dot, linear
from sardonyx.lower.ops.reduction import sum_
from sardonyx.lower.registry import complex_lowering
from sardonyx.lower.values import Tensor


@complex_lowering("aten::vdot")
def vdot(b: Builder, self: ComplexTensor, other: ComplexTensor) -> ComplexTensor:
    return arithmetic.bilinear(b, partial(dot, b), arithmetic.conjugate(b, self), other)


@complex_lowering("aten::linear")
def linear_(
    b: Builder,
    input: ComplexTensor | Tensor,
    weight: ComplexTensor | Tensor,
    bias: ComplexTensor | Tensor | None = None,
) -> ComplexTensor:
    result = arithmetic.bilinear(b, partial(linear, b), input, weight)
    return result if bias is None else arithmetic.add(b, result, bias)


@complex_lowering("aten::addbmm")
def addbmm(
    b: Builder,
    self: ComplexTensor,
    batch1: ComplexTensor,
    batch2: ComplexTensor,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
) -> ComplexTensor:
    products = arithmetic.bilinear(b, partial(matmul, b), batch1, batch2)
    total = ComplexTensor(sum_(b, products.real, [0]), sum_(b, products.imag, [0]))
    total = arithmetic.scale_by(b, total, alpha)
    if beta == 0:  # what `self` holds does not count, not even NaN
        return total
    return arithmetic.add(b, arithmetic.scale_by(b, self, beta), total)


@complex_lowering("aten::mH", "aten::mH.a", "aten::matrix_H", "aten::matrix_H.a", "aten::adjoint")
def adjoint(b: Builder, self: ComplexTensor) -> ComplexTensor:
    perm = [*range(self.rank - 2), self.rank - 1, self.rank - 2]
    turned = ComplexTensor(b.transpose(self.real, perm), b.transpose(self.imag, perm))
    return arithmetic.conjugate(b, turned)
