"""Arithmetic of complex numbers on their real and imaginary parts, stable near 0 and overflow."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor, conjugate, real_part, whole
from sardonyx.lower.kernels import elementwise
from sardonyx.lower.ops.arithmetic import hypot, whole_power
from sardonyx.lower.ops.math_functions import atan2
from sardonyx.lower.values import Scalar, Tensor

Product = Callable[[Tensor, Tensor], Tensor]
OfOne = Callable[[Builder, ComplexTensor], ComplexTensor]

# Of two operands one may be real, which saves the products with zero.


def add_or_subtract(b: Builder, x: Tensor, y: Tensor, *, op: str) -> ComplexTensor:
    """op: Add or Sub"""
    real = b.op(op, real_part(x), real_part(y))
    if isinstance(x, ComplexTensor) and not isinstance(y, ComplexTensor) and x.shape == real.shape:
        return ComplexTensor(real, x.imag)
    if isinstance(y, ComplexTensor) and not isinstance(x, ComplexTensor) and y.shape == real.shape:
        return ComplexTensor(real, b.Neg(y.imag) if op == "Sub" else y.imag)
    # A real operand may broadcast the other one.
    imag = b.op(op, whole(b, x).imag, whole(b, y).imag)
    return ComplexTensor(real, imag)


def bilinear(b: Builder, product: Product, x: Tensor, y: Tensor) -> ComplexTensor:
    """A product of two tensors, and what sums of products there are, on complex ones."""
    if not isinstance(x, ComplexTensor):
        assert isinstance(y, ComplexTensor)
        return ComplexTensor(product(x, y.real), product(x, y.imag))
    if not isinstance(y, ComplexTensor):
        return ComplexTensor(product(x.real, y), product(x.imag, y))
    return ComplexTensor(
        b.Sub(product(x.real, y.real), product(x.imag, y.imag)),
        b.Add(product(x.real, y.imag), product(x.imag, y.real)),
    )


def multiply(b: Builder, x: Tensor, y: Tensor) -> ComplexTensor:
    return bilinear(b, b.Mul, x, y)


def scale(b: Builder, z: ComplexTensor, factor: Scalar) -> ComplexTensor:
    if factor == 1:
        return z
    return ComplexTensor(b.Mul(z.real, factor), b.Mul(z.imag, factor))


def divide(b: Builder, x: Tensor, y: Tensor) -> ComplexTensor:
    if not isinstance(y, ComplexTensor):
        assert isinstance(x, ComplexTensor)
        return ComplexTensor(b.Div(x.real, y), b.Div(x.imag, y))
    # Smith's method: c^2 + d^2 could leave the range though the quotient does not.
    largest = b.Max(b.Abs(y.real), b.Abs(y.imag))
    zero = b.Equal(largest, 0)
    largest = b.Where(zero, 1, largest)
    c = b.Where(zero, 1, b.Div(y.real, largest))
    d = b.Div(y.imag, largest)
    divisor = b.Add(b.Mul(y.real, c), b.Mul(y.imag, d))
    if isinstance(x, ComplexTensor):
        real = b.Add(b.Mul(x.real, c), b.Mul(x.imag, d))
        imag = b.Sub(b.Mul(x.imag, c), b.Mul(x.real, d))
    else:
        real, imag = b.Mul(x, c), b.Neg(b.Mul(x, d))
    return ComplexTensor(b.Div(real, divisor), b.Div(imag, divisor))


def reciprocal(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return divide(b, b.scalar(1, z.dtype), z)


def magnitude(b: Builder, z: ComplexTensor) -> Tensor:
    return hypot(b, z.real, z.imag)


def phase(b: Builder, z: ComplexTensor) -> Tensor:
    return atan2(b, z.imag, z.real)


def polar(b: Builder, length: Tensor, angle: Tensor) -> ComplexTensor:
    return ComplexTensor(b.Mul(length, b.Cos(angle)), b.Mul(length, b.Sin(angle)))


# -- functions of one complex number --------------------------------------------------------------


def exp(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return polar(b, b.Exp(z.real), z.imag)


def log(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(b.Log(magnitude(b, z)), phase(b, z))


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


def rotated(b: Builder, function: OfOne, z: ComplexTensor) -> ComplexTensor:
    """-i function(iz): sin of sinh, tan of tanh, asinh of asin, atan of atanh."""
    result = function(b, ComplexTensor(b.Neg(z.imag), z.real))
    return ComplexTensor(result.imag, b.Neg(result.real))


def cos(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return cosh(b, ComplexTensor(b.Neg(z.imag), z.real))


def sigmoid(b: Builder, z: ComplexTensor) -> ComplexTensor:
    grown = exp(b, ComplexTensor(b.Neg(z.real), b.Neg(z.imag)))
    return reciprocal(b, ComplexTensor(b.Add(grown.real, 1.0), grown.imag))


def sign(b: Builder, z: ComplexTensor) -> ComplexTensor:
    length = magnitude(b, z)
    length = b.Where(b.Equal(length, 0), 1, length)
    return ComplexTensor(b.Div(z.real, length), b.Div(z.imag, length))


# -- powers ---------------------------------------------------------------------------------------

_MOST_FACTORS = 16


def power(b: Builder, z: Tensor, exponent: Tensor) -> ComplexTensor:
    """exp(exponent * log(z))"""
    base = whole(b, z)
    result = exp(b, multiply(b, exponent, log(b, base)))
    vanishes = b.And(b.Equal(base, 0), b.Greater(real_part(exponent), 0))
    return ComplexTensor(b.Where(vanishes, 0, result.real), b.Where(vanishes, 0, result.imag))


def power_of_number(b: Builder, z: ComplexTensor, exponent: int | float | complex) -> ComplexTensor:
    if exponent.imag != 0:
        return power(b, z, b.scalar(exponent, z.dtype))
    exponent = exponent.real
    if exponent == 0.5:
        return sqrt(b, z)
    if exponent == -0.5:
        return reciprocal(b, sqrt(b, z))
    if exponent == int(exponent) and abs(exponent) <= _MOST_FACTORS:
        result = whole(b, whole_power(b, z, abs(int(exponent))))
        return result if exponent >= 0 else reciprocal(b, result)
    length = b.Pow(magnitude(b, z), b.scalar(exponent, z.real.dtype))
    return polar(b, length, b.Mul(phase(b, z), exponent))
