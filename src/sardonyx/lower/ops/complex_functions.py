"""Arithmetic and functions of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from sardonyx.lower import complex_arithmetic as arithmetic
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_values import ComplexTensor, Operand, from_pairs, of_real, to_pairs
from sardonyx.lower.ops import random
from sardonyx.lower.ops.conversion import SAME_VALUES
from sardonyx.lower.registry import complex_lowering
from sardonyx.lower.values import Tensor


@complex_lowering(*(f"aten::{name}" for name in SAME_VALUES))
def same_values(b: Builder, self: ComplexTensor) -> ComplexTensor:
    return self


# -- the parts and the whole ----------------------------------------------------------------------


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


@complex_lowering("aten::real")
def real(b: Builder, self: ComplexTensor) -> Tensor:
    return self.real


@complex_lowering("aten::imag")
def imag(b: Builder, self: ComplexTensor) -> Tensor:
    return self.imag


@complex_lowering(
    "aten::conj", "aten::_conj", "aten::_conj_copy", "aten::conj_physical", "aten::_conj_physical"
)
def conj(b: Builder, self: ComplexTensor) -> ComplexTensor:
    return arithmetic.conjugate(b, self)


@complex_lowering("aten::abs", "aten::absolute")
def abs_(b: Builder, self: ComplexTensor) -> Tensor:
    return arithmetic.magnitude(b, self)


@complex_lowering("aten::angle")
def angle(b: Builder, self: ComplexTensor) -> Tensor:
    return arithmetic.phase(b, self)


# -- arithmetic -----------------------------------------------------------------------------------


@complex_lowering("aten::add.Tensor", "aten::add.Scalar")
def add(b: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> ComplexTensor:
    x, y = arithmetic.promoted(b, self, other)
    return arithmetic.add(b, x, _times(b, y, alpha))


@complex_lowering(
    "aten::sub.Tensor", "aten::sub.Scalar", "aten::subtract.Tensor", "aten::subtract.Scalar"
)
def sub(b: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> ComplexTensor:
    x, y = arithmetic.promoted(b, self, other)
    return arithmetic.subtract(b, x, _times(b, y, alpha))


@complex_lowering("aten::rsub.Tensor", "aten::rsub.Scalar")
def rsub(b: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> ComplexTensor:
    return sub(b, other, self, alpha)


def _times(b: Builder, x: arithmetic.Part, alpha: Operand) -> arithmetic.Part:
    return x if alpha == 1 else arithmetic.scale_by(b, arithmetic.whole(b, x), alpha)


@complex_lowering(
    "aten::mul.Tensor", "aten::mul.Scalar", "aten::multiply.Tensor", "aten::multiply.Scalar"
)
def mul(b: Builder, self: Operand, other: Operand) -> ComplexTensor:
    return arithmetic.multiply(b, *arithmetic.promoted(b, self, other))


@complex_lowering(
    "aten::div.Tensor",
    "aten::div.Scalar",
    "aten::divide.Tensor",
    "aten::divide.Scalar",
    "aten::true_divide.Tensor",
    "aten::true_divide.Scalar",
)
def div(b: Builder, self: Operand, other: Operand) -> ComplexTensor:
    return arithmetic.divide(b, *arithmetic.promoted(b, self, other))


@complex_lowering("aten::pow.Tensor_Tensor", "aten::pow.Tensor_Scalar", "aten::pow.Scalar")
def pow_(b: Builder, self: Operand, exponent: Operand) -> ComplexTensor:
    base, power = arithmetic.promoted(b, self, exponent)
    if isinstance(exponent, (int, float, complex)):
        return arithmetic.power_of_number(b, arithmetic.whole(b, base), exponent)
    return arithmetic.power(b, base, power)


# -- functions of one number ----------------------------------------------------------------------

Unary = Callable[[Builder, ComplexTensor], ComplexTensor]


def _exp2(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return arithmetic.exp(b, arithmetic.scale(b, z, 0.6931471805599453))


def _rsqrt(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return arithmetic.reciprocal(b, arithmetic.sqrt(b, z))


def _square(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return arithmetic.multiply(b, z, z)


_FUNCTIONS: dict[str, Unary] = {
    "exp": arithmetic.exp,
    "exp2 special_exp2": _exp2,
    "expm1 special_expm1": arithmetic.expm1,
    "log": arithmetic.log,
    "log2": partial(arithmetic.logarithm, base=2),
    "log10": partial(arithmetic.logarithm, base=10),
    "log1p special_log1p": arithmetic.log1p,
    "sqrt": arithmetic.sqrt,
    "rsqrt": _rsqrt,
    "square": _square,
    "reciprocal": arithmetic.reciprocal,
    "sin": arithmetic.sin,
    "cos": arithmetic.cos,
    "tan": arithmetic.tan,
    "asin arcsin": arithmetic.asin,
    "acos arccos": arithmetic.acos,
    "atan arctan": arithmetic.atan,
    "sinh": arithmetic.sinh,
    "cosh": arithmetic.cosh,
    "tanh": arithmetic.tanh,
    "asinh arcsinh": arithmetic.asinh,
    "acosh arccosh": arithmetic.acosh,
    "atanh arctanh": arithmetic.atanh,
    "sigmoid special_expit": arithmetic.sigmoid,
    "sgn": arithmetic.sign,
}


def _register_function(names: str, function: Unary) -> None:
    @complex_lowering(*(f"aten::{name}" for name in names.split()))
    def of_complex(b: Builder, self: ComplexTensor) -> ComplexTensor:
        return function(b, self)


for _names, _function in _FUNCTIONS.items():
    _register_function(_names, _function)


# -- comparisons ----------------------------------------------------------------------------------


@complex_lowering("aten::eq.Tensor", "aten::eq.Scalar")
def eq(b: Builder, self: Operand, other: Operand) -> Tensor:
    x, y = (arithmetic.whole(b, part) for part in arithmetic.promoted(b, self, other))
    return b.And(b.Equal(x.real, y.real), b.Equal(x.imag, y.imag))


@complex_lowering(
    "aten::ne.Tensor", "aten::ne.Scalar", "aten::not_equal.Tensor", "aten::not_equal.Scalar"
)
def ne(b: Builder, self: Operand, other: Operand) -> Tensor:
    return b.Not(eq(b, self, other))


@complex_lowering("aten::isnan")
def isnan(b: Builder, self: ComplexTensor) -> Tensor:
    return b.Or(b.IsNaN(self.real), b.IsNaN(self.imag))


@complex_lowering("aten::isinf")
def isinf(b: Builder, self: ComplexTensor) -> Tensor:
    return b.Or(b.IsInf(self.real), b.IsInf(self.imag))


@complex_lowering("aten::isfinite")
def isfinite(b: Builder, self: ComplexTensor) -> Tensor:
    return b.Not(b.Or(isnan(b, self), isinf(b, self)))


@complex_lowering("aten::isreal")
def isreal(b: Builder, self: ComplexTensor) -> Tensor:
    return b.Equal(self.imag, 0)


@complex_lowering("aten::isclose")
def isclose(
    b: Builder,
    self: ComplexTensor,
    other: ComplexTensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    distance = arithmetic.magnitude(b, arithmetic.subtract(b, self, other))
    allowed = b.Add(b.Mul(arithmetic.magnitude(b, other), rtol), atol)
    close = b.And(isfinite(b, self), b.And(isfinite(b, other), b.LessOrEqual(distance, allowed)))
    close = b.Or(close, eq(b, self, other))
    if equal_nan:
        close = b.Or(close, b.And(isnan(b, self), isnan(b, other)))
    return close


# -- conversions ----------------------------------------------------------------------------------


def _converted(b: Builder, x: ComplexTensor | Tensor, dtype: torch.dtype) -> ComplexTensor | Tensor:
    if not isinstance(x, ComplexTensor):
        x = of_real(b, x)
    if dtype == torch.bool:
        return arithmetic.is_nonzero(b, x)
    if not dtype.is_complex:
        return b.cast(x.real, dtype)
    part = dtype.to_real()
    if x.real.dtype == part:
        return x
    return ComplexTensor(b.cast(x.real, part), b.cast(x.imag, part))


@complex_lowering("aten::to.dtype", "aten::to.dtype_layout", "aten::to.device", "aten::_to_copy")
def to(
    b: Builder,
    self: ComplexTensor | Tensor,
    dtype: torch.dtype | None = None,
    copy: bool = False,
) -> ComplexTensor | Tensor:
    return _converted(b, self, dtype or self.dtype)


@complex_lowering("aten::to.other", "aten::type_as")
def to_other(
    b: Builder, self: ComplexTensor | Tensor, other: ComplexTensor | Tensor, copy: bool = False
) -> ComplexTensor | Tensor:
    return _converted(b, self, other.dtype)


@complex_lowering("aten::copy")
def copy(
    b: Builder, self: ComplexTensor | Tensor, src: ComplexTensor | Tensor
) -> ComplexTensor | Tensor:
    """`src` as `self` would hold it after a copy."""
    held = _converted(b, src, self.dtype)
    if isinstance(self, ComplexTensor) and isinstance(held, ComplexTensor):
        dims = b.dims(self.real)
        return ComplexTensor(b.expand(held.real, dims), b.expand(held.imag, dims))
    assert isinstance(self, Tensor) and isinstance(held, Tensor)
    return b.expand(held, b.dims(self))


# -- random numbers -------------------------------------------------------------------------------


@complex_lowering("aten::normal_functional")
def normal_functional(
    b: Builder, self: ComplexTensor, mean: float = 0.0, std: float = 1.0
) -> ComplexTensor:
    """Each part has half of the variance."""
    parts = (random.normal_functional(b, x, mean, std * 0.5**0.5) for x in (self.real, self.imag))
    return ComplexTensor(*parts)
