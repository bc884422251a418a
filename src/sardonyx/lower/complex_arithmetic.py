"""Arithmetic of complex numbers on their real and imaginary parts, stable near 0 and overflow."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from sardonyx.lower import elementwise, promote
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_values import ComplexTensor, Operand
from sardonyx.lower.ops.arithmetic import hypot
from sardonyx.lower.ops.math_functions import atan2
from sardonyx.lower.values import Scalar, Tensor

Part = ComplexTensor | Tensor
"""A promoted operand; a real one keeps being one, which saves the products with zero."""
Product = Callable[[Tensor, Tensor], Tensor]


def promoted(b: Builder, *given: Operand, dtype: torch.dtype | None = None) -> list[Part]:
    """The operands in PyTorch's common dtype, or in that of `dtype`'s parts."""
    common = (dtype or promote.result_dtype(*given)).to_real()
    return [_as_part(b, operand, common) for operand in given]


def _as_part(b: Builder, operand: Operand, dtype: torch.dtype) -> Part:
    if isinstance(operand, ComplexTensor):
        if operand.real.dtype == dtype:
            return operand
        return ComplexTensor(b.cast(operand.real, dtype), b.cast(operand.imag, dtype))
    if isinstance(operand, complex):
        return ComplexTensor(b.scalar(operand.real, dtype), b.scalar(operand.imag, dtype))
    return b.scalar(operand, dtype)


def whole(b: Builder, x: Part) -> ComplexTensor:
    """With both its parts."""
    return x if isinstance(x, ComplexTensor) else ComplexTensor(x, b.zeros_like(x))


def add(b: Builder, x: Part, y: Part) -> ComplexTensor:
    return _sum(b, "Add", x, y)


def subtract(b: Builder, x: Part, y: Part) -> ComplexTensor:
    return _sum(b, "Sub", x, y)


def _sum(b: Builder, op: str, x: Part, y: Part) -> ComplexTensor:
    real = b.op(op, real_part(x), real_part(y))
    if isinstance(x, ComplexTensor) and isinstance(y, Tensor) and x.shape == real.shape:
        return ComplexTensor(real, x.imag)
    # A real operand may broadcast the other one.
    imag = b.op(op, whole(b, x).imag, whole(b, y).imag)
    return ComplexTensor(real, imag)


def real_part(x: Part) -> Tensor:
    return x.real if isinstance(x, ComplexTensor) else x


def bilinear(b: Builder, product: Product, x: Part, y: Part) -> ComplexTensor:
    """A product of two tensors, and what sums of products there are, on complex ones."""
    if isinstance(x, Tensor):
        if isinstance(y, Tensor):
            return whole(b, product(x, y))
        return ComplexTensor(product(x, y.real), product(x, y.imag))
    if isinstance(y, Tensor):
        return ComplexTensor(product(x.real, y), product(x.imag, y))
    return ComplexTensor(
        b.Sub(product(x.real, y.real), product(x.imag, y.imag)),
        b.Add(product(x.real, y.imag), product(x.imag, y.real)),
    )


def multiply(b: Builder, x: Part, y: Part) -> ComplexTensor:
    return bilinear(b, b.Mul, x, y)


def scale(b: Builder, z: ComplexTensor, factor: Scalar) -> ComplexTensor:
    if factor == 1:
        return z
    return ComplexTensor(b.Mul(z.real, factor), b.Mul(z.imag, factor))


def scale_by(b: Builder, z: ComplexTensor, factor: Operand) -> ComplexTensor:
    """z times a number of either kind, in the dtype of z."""
    if isinstance(factor, (int, float)):
        return scale(b, z, factor)
    return multiply(b, z, _as_part(b, factor, z.real.dtype))


def divide(b: Builder, x: Part, y: Part) -> ComplexTensor:
    if isinstance(y, Tensor):
        x = whole(b, x)
        return ComplexTensor(b.Div(x.real, y), b.Div(x.imag, y))
    # Smith's method: c^2 + d^2 could leave the range though the quotient does not.
    largest = b.Max(b.Abs(y.real), b.Abs(y.imag))
    zero = b.Equal(largest, 0)
    largest = b.Where(zero, 1, largest)
    c = b.Where(zero, 1, b.Div(y.real, largest))
    d = b.Div(y.imag, largest)
    divisor = b.Add(b.Mul(y.real, c), b.Mul(y.imag, d))
    if isinstance(x, Tensor):
        real, imag = b.Mul(x, c), b.Neg(b.Mul(x, d))
    else:
        real = b.Add(b.Mul(x.real, c), b.Mul(x.imag, d))
        imag = b.Sub(b.Mul(x.imag, c), b.Mul(x.real, d))
    return ComplexTensor(b.Div(real, divisor), b.Div(imag, divisor))


def reciprocal(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return divide(b, b.scalar(1, z.real.dtype), z)


def negate(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(b.Neg(z.real), b.Neg(z.imag))


def conjugate(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(z.real, b.Neg(z.imag))


def magnitude(b: Builder, z: ComplexTensor) -> Tensor:
    return hypot(b, z.real, z.imag)


def phase(b: Builder, z: ComplexTensor) -> Tensor:
    return atan2(b, z.imag, z.real)


def is_nonzero(b: Builder, z: ComplexTensor) -> Tensor:
    return b.Not(is_zero(b, z))


def is_zero(b: Builder, z: ComplexTensor) -> Tensor:
    return b.And(b.Equal(z.real, 0), b.Equal(z.imag, 0))


def choose(b: Builder, condition: Tensor, x: ComplexTensor, y: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(b.Where(condition, x.real, y.real), b.Where(condition, x.imag, y.imag))


def polar(b: Builder, length: Tensor, angle: Tensor) -> ComplexTensor:
    return ComplexTensor(b.Mul(length, b.Cos(angle)), b.Mul(length, b.Sin(angle)))


# -- functions of one complex number --------------------------------------------------------------


def exp(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return polar(b, b.Exp(z.real), z.imag)


def expm1(b: Builder, z: ComplexTensor) -> ComplexTensor:
    # exp(x) cos(y) - 1 without the cancellation near 0.
    half = b.Sin(b.Mul(z.imag, 0.5))
    real = b.Sub(b.Mul(elementwise.expm1(b, z.real), b.Cos(z.imag)), b.Mul(b.Mul(half, half), 2.0))
    return ComplexTensor(real, b.Mul(b.Exp(z.real), b.Sin(z.imag)))


def log(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(b.Log(magnitude(b, z)), phase(b, z))


def log1p(b: Builder, z: ComplexTensor) -> ComplexTensor:
    shifted = ComplexTensor(b.Add(z.real, 1.0), z.imag)
    # Near 0 by |1 + z|^2 - 1 = x (2 + x) + y^2; elsewhere that could cancel and overflow.
    excess = b.Add(b.Mul(z.real, b.Add(z.real, 2.0)), b.Mul(z.imag, z.imag))
    near = b.Less(b.Max(b.Abs(z.real), b.Abs(z.imag)), 0.5)
    small = b.Mul(elementwise.log1p(b, excess), 0.5)
    large = log(b, shifted)
    return ComplexTensor(b.Where(near, small, large.real), large.imag)


def sqrt(b: Builder, z: ComplexTensor) -> ComplexTensor:
    half = b.Sqrt(b.Add(b.Mul(magnitude(b, z), 0.5), b.Mul(b.Abs(z.real), 0.5)))
    zero = b.Equal(half, 0)
    other = b.Where(zero, z.imag, b.Div(z.imag, b.Mul(b.Where(zero, 1, half), 2.0)))
    left = b.Less(z.real, 0)
    signed = b.Where(elementwise.sign_bit(b, z.imag), b.Neg(half), half)
    return ComplexTensor(
        b.Where(left, b.Abs(other), half),
        b.Where(left, signed, other),
    )


def sin(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(b.Mul(b.Sin(z.real), b.Cosh(z.imag)), b.Mul(b.Cos(z.real), b.Sinh(z.imag)))


def cos(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(
        b.Mul(b.Cos(z.real), b.Cosh(z.imag)), b.Neg(b.Mul(b.Sin(z.real), b.Sinh(z.imag)))
    )


def sinh(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(b.Mul(b.Sinh(z.real), b.Cos(z.imag)), b.Mul(b.Cosh(z.real), b.Sin(z.imag)))


def cosh(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(b.Mul(b.Cosh(z.real), b.Cos(z.imag)), b.Mul(b.Sinh(z.real), b.Sin(z.imag)))


def tanh(b: Builder, z: ComplexTensor) -> ComplexTensor:
    # With e = exp(-2 |x|), so that nothing overflows, and 1 - e without cancellation.
    decay = b.Mul(b.Abs(z.real), -2.0)
    e, rest = b.Exp(decay), b.Neg(elementwise.expm1(b, decay))
    cosine, sine = b.Cos(z.imag), b.Sin(z.imag)
    four = b.Mul(e, 4.0)
    divisor = b.Add(b.Mul(rest, rest), b.Mul(four, b.Mul(cosine, cosine)))
    real = b.Mul(b.Sign(z.real), b.Div(b.Mul(rest, b.Add(e, 1.0)), divisor))
    return ComplexTensor(real, b.Div(b.Mul(four, b.Mul(sine, cosine)), divisor))


def asin(b: Builder, z: ComplexTensor) -> ComplexTensor:
    # Kahan's formulas for this and the next two keep to the right side of the cuts.
    below, above = _roots_beside_one(b, z)
    product = multiply(b, below, above)
    imag = multiply(b, conjugate(b, below), above).imag
    return ComplexTensor(atan2(b, z.real, product.real), _real_asinh(b, imag))


def acos(b: Builder, z: ComplexTensor) -> ComplexTensor:
    below, above = _roots_beside_one(b, z)
    imag = multiply(b, conjugate(b, above), below).imag
    return ComplexTensor(b.Mul(atan2(b, below.real, above.real), 2.0), _real_asinh(b, imag))


def acosh(b: Builder, z: ComplexTensor) -> ComplexTensor:
    below = sqrt(b, ComplexTensor(b.Sub(z.real, 1.0), z.imag))
    above = sqrt(b, ComplexTensor(b.Add(z.real, 1.0), z.imag))
    real = multiply(b, conjugate(b, below), above).real
    return ComplexTensor(_real_asinh(b, real), b.Mul(atan2(b, below.imag, above.real), 2.0))


def _roots_beside_one(b: Builder, z: ComplexTensor) -> tuple[ComplexTensor, ComplexTensor]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    return (
        sqrt(b, ComplexTensor(b.Sub(1.0, z.real), b.Neg(z.imag))),
        sqrt(b, ComplexTensor(b.Add(z.real, 1.0), z.imag)),
    )


def _real_asinh(b: Builder, x: Tensor) -> Tensor:
    """To full precision near 0, where the runtime's Asinh cancels."""
    size = b.Abs(x)
    beyond = b.Div(b.Mul(size, size), b.Add(b.Sqrt(b.Add(b.Mul(size, size), 1.0)), 1.0))
    return b.Mul(b.Sign(x), elementwise.log1p(b, b.Add(size, beyond)))


def atanh(b: Builder, z: ComplexTensor) -> ComplexTensor:
    x, y = b.Abs(z.real), z.imag
    gap, square = b.Sub(1.0, x), b.Mul(y, y)
    ratio = b.Div(b.Mul(x, 4.0), b.Add(b.Mul(gap, gap), square))
    real = b.Mul(b.Sign(z.real), b.Mul(elementwise.log1p(b, ratio), 0.25))
    imag = atan2(b, b.Mul(y, 2.0), b.Sub(b.Mul(gap, b.Add(x, 1.0)), square))
    return ComplexTensor(real, b.Mul(imag, 0.5))


def _turned(b: Builder, z: ComplexTensor) -> ComplexTensor:
    """iz"""
    return ComplexTensor(b.Neg(z.imag), z.real)


def _turned_back(b: Builder, z: ComplexTensor) -> ComplexTensor:
    """-iz"""
    return ComplexTensor(z.imag, b.Neg(z.real))


def tan(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return _turned_back(b, tanh(b, _turned(b, z)))


def asinh(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return _turned_back(b, asin(b, _turned(b, z)))


def atan(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return _turned_back(b, atanh(b, _turned(b, z)))


def sigmoid(b: Builder, z: ComplexTensor) -> ComplexTensor:
    grown = exp(b, negate(b, z))
    return reciprocal(b, ComplexTensor(b.Add(grown.real, 1.0), grown.imag))


def sign(b: Builder, z: ComplexTensor) -> ComplexTensor:
    length = magnitude(b, z)
    length = b.Where(b.Equal(length, 0), 1, length)
    return ComplexTensor(b.Div(z.real, length), b.Div(z.imag, length))


# -- powers ---------------------------------------------------------------------------------------

_MOST_FACTORS = 16


def power(b: Builder, z: Part, exponent: Part) -> ComplexTensor:
    """exp(exponent * log(z))"""
    base = whole(b, z)
    result = exp(b, multiply(b, exponent, log(b, base)))
    vanishes = b.And(is_zero(b, base), b.Greater(real_part(exponent), 0))
    return ComplexTensor(b.Where(vanishes, 0, result.real), b.Where(vanishes, 0, result.imag))


def power_of_number(b: Builder, z: ComplexTensor, exponent: int | float | complex) -> ComplexTensor:
    if exponent.imag != 0:
        return power(b, z, _as_part(b, exponent, z.real.dtype))
    exponent = exponent.real
    if exponent == 0.5:
        return sqrt(b, z)
    if exponent == -0.5:
        return reciprocal(b, sqrt(b, z))
    if exponent == int(exponent) and abs(exponent) <= _MOST_FACTORS:
        result = _whole_power(b, z, abs(int(exponent)))
        return result if exponent >= 0 else reciprocal(b, result)
    length = b.Pow(magnitude(b, z), b.scalar(exponent, z.real.dtype))
    return polar(b, length, b.Mul(phase(b, z), exponent))


def _whole_power(b: Builder, z: ComplexTensor, exponent: int) -> ComplexTensor:
    result: ComplexTensor | None = None
    square = z
    while exponent:
        if exponent & 1:
            result = square if result is None else multiply(b, result, square)
        exponent >>= 1
        if exponent:
            square = multiply(b, square, square)
    if result is None:
        return ComplexTensor(b.full_like(z.real, 1), b.zeros_like(z.real))
    return result


def logarithm(b: Builder, z: ComplexTensor, base: float) -> ComplexTensor:
    return scale(b, log(b, z), 1 / math.log(base))
