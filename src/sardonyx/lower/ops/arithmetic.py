"""Arithmetic on tensors and scalars, with PyTorch's promotion and its integer semantics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise, loops
from sardonyx.lower.kernels.axes import alike
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor

_LOGICAL_FORM = {"Add": "Or", "Mul": "And"}


def _combine(b: Builder, op: str, x: Tensor, y: Tensor) -> Tensor:
    """A binary operator on operands of one dtype; bool + bool is Or and bool * bool is And."""
    if x.dtype == torch.bool:
        op = _LOGICAL_FORM.get(op, op)
    return b.op(op, x, y)


_SWAPPED = {"self": "other", "other": "self"}


@lowering("aten::add.Tensor", "aten::add.Scalar", op="Add")
@lowering("aten::sub.Tensor", "aten::sub.Scalar", op="Sub")
@lowering("aten::subtract.Tensor", "aten::subtract.Scalar", op="Sub")
@lowering("aten::rsub.Tensor", "aten::rsub.Scalar", renamed=_SWAPPED, op="Sub")
def add_or_subtract(
    b: Builder, self: Tensor | Scalar, other: Tensor | Scalar, alpha: Scalar = 1, *, op: str
) -> Tensor:
    """Of halves, `alpha` is rounded, and the result."""
    x, y = b.promote(self, other)
    wide = type_promotion.once_rounded_dtype(x.dtype)
    if wide == x.dtype or alpha == 1:
        return _combine(b, op, x, elementwise.multiply(b, y, alpha))
    factor = b.cast(b.scalar(alpha, x.dtype), wide)
    return b.cast(b.op(op, b.cast(x, wide), b.Mul(b.cast(y, wide), factor)), x.dtype)


@lowering("aten::mul.Tensor", "aten::mul.Scalar", "aten::multiply.Tensor", "aten::multiply.Scalar")
def mul(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    dtype = type_promotion.result_dtype(self, other)
    return elementwise.with_number(b, partial(_combine, b, "Mul"), self, other, dtype)


# -- division ----------------------------------------------------------------------------------


@lowering(
    "aten::div.Tensor",
    "aten::div.Scalar",
    "aten::div.Tensor_mode",
    "aten::div.Scalar_mode",
    "aten::divide.Tensor",
    "aten::divide.Scalar",
    "aten::divide.Tensor_mode",
    "aten::divide.Scalar_mode",
    "aten::true_divide.Tensor",
    "aten::true_divide.Scalar",
)
def div(
    b: Builder,
    self: Tensor | Scalar,
    other: Tensor | Scalar,
    rounding_mode: str | None = None,
) -> Tensor:
    if rounding_mode == "floor":
        return floor_divide(b, self, other)
    if rounding_mode == "trunc":
        dtype = type_promotion.result_dtype(self, other)
        return elementwise.with_number(b, partial(_truncated_quotient, b), self, other, dtype)
    return elementwise.with_number(b, b.Div, self, other, type_promotion.float_dtype(self, other))


def _truncated_quotient(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    return elementwise.truncate(b, b.Div(x, y)) if x.is_floating_point else _divided(b, x, y)


def _divided(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """The quotient of integers, rounded to zero."""
    if x.const is not None and x.const.numel() == 1 and x.const.item() == 1:
        # ONNX Runtime makes z / y of (1 / y) * z, as if integers were reals.
        return b.Where(b.Equal(b.Abs(y), 1), y, b.scalar(0, y.dtype))
    return b.Div(x, y)


@lowering("aten::floor_divide", "aten::floor_divide.Scalar")
def floor_divide(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    dtype = type_promotion.result_dtype(self, other)
    wide = _wide_enough(dtype)
    # As in a product, only the divisor is not rounded to a half first.
    x = b.cast(b.scalar(self, dtype), wide)
    y = b.cast(b.scalar(other, type_promotion.computing_dtype(dtype, other)), wide)
    if x.is_floating_point:
        return b.cast(_floor_divide_floats(b, x, y), dtype)
    # ONNX Div truncates, Mod takes the divisor's sign.
    if not dtype.is_signed:
        return b.cast(b.Div(x, y), dtype)
    if dtype.itemsize < wide.itemsize:
        return b.cast(b.Div(b.Sub(x, b.Mod(x, y)), y), dtype)
    truncated = b.Div(x, y)
    exact = b.Equal(b.Add(b.Mul(truncated, y), b.Mod(x, y)), x)
    return b.Sub(truncated, b.cast(b.Not(exact), wide))


def _wide_enough(dtype: torch.dtype) -> torch.dtype:
    """Where a quotient before its rounding neither overflows nor rounds to the next integer."""
    if dtype.itemsize >= 4:
        return dtype
    return torch.float32 if dtype.is_floating_point else torch.int32


def _floor_divide_floats(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """Python's floor division: 1.0 // 0.1 is 9, though 1.0 / 0.1 rounds to 10."""
    rest = b.Mod(x, y, fmod=1)
    truncated = b.Round(b.Div(b.Sub(x, rest), y))
    opposite = b.And(b.Xor(b.Less(rest, 0), b.Less(y, 0)), b.Not(b.Equal(rest, 0)))
    floored = b.Sub(truncated, b.cast(opposite, x.dtype))
    return b.Where(b.Equal(y, 0), b.Div(x, y), floored)


@lowering("aten::remainder.Tensor", "aten::remainder.Scalar", "aten::remainder.Scalar_Tensor")
def remainder(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    # As ONNX Mod without fmod: the sign is the divisor's.
    return b.Mod(*b.promote(self, other))


@lowering("aten::fmod.Tensor", "aten::fmod.Scalar")
def fmod(b: Builder, self: Tensor, other: Tensor | Scalar) -> Tensor:
    x, y = b.promote(self, other)
    if x.is_floating_point:
        return b.Mod(x, y, fmod=1)
    # Runtimes compute it in floats.
    return b.Sub(x, b.Mul(_divided(b, x, y), y))


@lowering("aten::gcd")
def gcd(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    x, y = b.promote(self, other)
    dtype = x.dtype
    x, y = (b.Abs(b.cast(operand, torch.int64)) for operand in alike(b, x, y))

    def unfinished(carried: Sequence[Tensor]) -> Tensor:
        return b.Not(b.Equal(carried[0], 0))

    def step(number: Tensor, carried: Sequence[Tensor]) -> list[Tensor]:
        x, y = carried
        done = b.Equal(x, 0)
        rest = b.Mod(y, b.Where(done, 1, x))
        return [b.Where(done, 0, rest), b.Where(done, y, x)]

    return b.cast(loops.repeat_while(b, unfinished, step, [x, y])[1], dtype)


@lowering("aten::reciprocal")
def reciprocal(b: Builder, self: Tensor) -> Tensor:
    return b.Reciprocal(b.cast(self, type_promotion.float_dtype(self)))


# -- powers ------------------------------------------------------------------------------------


@lowering("aten::pow.Tensor_Tensor", "aten::pow.Tensor_Scalar", "aten::pow.Scalar")
def pow_(b: Builder, self: Tensor | Scalar, exponent: Tensor | Scalar) -> Tensor:
    dtype = type_promotion.result_dtype(self, exponent)
    base = b.scalar(self, dtype)
    is_whole = not (dtype.is_floating_point or dtype.is_complex)
    if isinstance(exponent, (int, float)) and not is_whole:
        return _float_power(b, base, exponent)
    if isinstance(exponent, int):
        if exponent < 0:
            raise b.refuse("integers to negative integer powers are not allowed")
        return whole_power(b, base, exponent)
    power = b.scalar(exponent, dtype)
    if not is_whole:
        return b.Pow(base, power)
    return b.cast(_integer_powers(b, b.cast(base, torch.int64), b.cast(power, torch.int64)), dtype)


def _float_power(b: Builder, base: Tensor, exponent: float) -> Tensor:
    """The exponents PyTorch itself computes by other means, and Pow for the rest."""
    if exponent == 1:
        return base
    if exponent == 0.5:
        result = b.Sqrt(base)
    elif exponent == -0.5:
        wide = type_promotion.once_rounded_dtype(base.dtype)
        result = b.cast(b.Reciprocal(b.Sqrt(b.cast(base, wide))), base.dtype)
    elif exponent == -1:
        result = b.Reciprocal(base)
    else:
        result = b.Pow(base, b.scalar(exponent, base.dtype))
    return result


def whole_power(b: Builder, base: Tensor, exponent: int) -> Tensor:
    """By squaring: exact and wrapping as in PyTorch; a runtime's Pow may go through floats."""
    result: Tensor | None = None
    square = base
    while exponent:
        if exponent & 1:
            result = square if result is None else b.Mul(result, square)
        exponent >>= 1
        if exponent:
            square = b.Mul(square, square)
    return b.full_like(base, 1) if result is None else result


def _integer_powers(b: Builder, base: Tensor, power: Tensor) -> Tensor:
    """By squaring, as many times as the powers have bits."""
    base, power = alike(b, base, power)

    def unfinished(carried: Sequence[Tensor]) -> Tensor:
        return b.Greater(carried[2], 0)

    def step(number: Tensor, carried: Sequence[Tensor]) -> list[Tensor]:
        result, square, left = carried
        odd = b.Equal(b.Mod(left, 2), 1)
        result = b.Where(odd, b.Mul(result, square), result)
        return [result, b.Mul(square, square), b.Div(left, 2)]

    start = [b.full_like(base, 1), base, b.Abs(power)]
    result = loops.repeat_while(b, unfinished, step, start)[0]
    # A negative power is a fraction, hence 0, but for 1 and -1.
    fraction = b.And(b.Less(power, 0), b.Not(b.Equal(b.Abs(base), 1)))
    return b.Where(fraction, 0, result)


@lowering("aten::square")
def square(b: Builder, self: Tensor) -> Tensor:
    x = b.cast(self, torch.int64) if self.dtype == torch.bool else self
    return b.Mul(x, x)


@lowering("aten::hypot")
def hypot(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    dtype = type_promotion.result_dtype(self, other)
    x, y = (b.Abs(operand) for operand in elementwise.rounded_once(b, b.promote(self, other)))
    longer, shorter = b.Max(x, y), b.Min(x, y)
    # Squares of the sides could overflow. Equal sides may be 0 or infinite, where 0/0 lurks.
    ratio = b.Where(b.Equal(x, y), 1, b.Div(shorter, longer))
    result = b.Mul(longer, b.Sqrt(b.Add(b.Mul(ratio, ratio), 1)))
    # An infinite side makes it infinite, even if the other is NaN.
    result = b.Where(b.Or(b.IsInf(x), b.IsInf(y)), math.inf, result)
    return b.cast(result, dtype)


# -- signs -------------------------------------------------------------------------------------


@lowering("aten::neg", "aten::negative", "aten::_neg_view", "aten::_neg_view_copy")
def neg(b: Builder, self: Tensor) -> Tensor:
    return b.Neg(self) if self.dtype.is_signed else b.Sub(0, self)


@lowering("aten::abs", "aten::absolute")
def abs_(b: Builder, self: Tensor) -> Tensor:
    return b.Abs(self) if self.dtype.is_signed else self


@lowering("aten::sign", "aten::sgn")
def sign(b: Builder, self: Tensor) -> Tensor:
    if self.dtype == torch.bool:
        return self
    result = b.Sign(self)
    if self.is_floating_point:  # PyTorch gives 0 for NaN
        result = b.Where(b.IsNaN(self), 0, result)
    return result


@lowering("aten::signbit")
def signbit(b: Builder, self: Tensor) -> Tensor:
    return elementwise.sign_bit(b, self)


@lowering("aten::heaviside")
def heaviside(b: Builder, self: Tensor, values: Tensor) -> Tensor:
    step = self if self.dtype == torch.bool else b.cast(b.Greater(self, 0), self.dtype)
    return elementwise.where(b, elementwise.is_zero(b, self), values, step)


# -- products of three -------------------------------------------------------------------------


@lowering("aten::addcmul", op="Mul")
@lowering("aten::addcdiv", op="Div")
def add_combined(
    b: Builder, self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Scalar = 1, *, op: str
) -> Tensor:
    operands = b.promote(self, tensor1, tensor2)
    dtype = operands[0].dtype
    x, first, second = elementwise.rounded_once(b, operands)
    added = _combine(b, op, elementwise.multiply(b, first, value), second)
    return b.cast(_combine(b, "Add", x, added), dtype)


@lowering("aten::lerp.Scalar", "aten::lerp.Tensor")
def lerp(b: Builder, self: Tensor, end: Tensor, weight: Tensor | Scalar) -> Tensor:
    """From the nearer of both ends, so that it is exact there, as in ATen."""
    dtype = self.dtype
    if isinstance(weight, Tensor):  # a number is not rounded
        weight = b.cast(weight, dtype)
    self, end = elementwise.rounded_once(b, [self, end])
    share = b.scalar(weight, self.dtype)
    distance = b.Sub(end, self)
    near = b.Add(self, b.Mul(share, distance))
    far = b.Sub(end, b.Mul(b.Sub(1, share), distance))
    if isinstance(weight, (int, float)):
        return b.cast(near if abs(weight) < 0.5 else far, dtype)
    return b.cast(b.Where(b.Less(b.Abs(share), 0.5), near, far), dtype)


# -- bounds ------------------------------------------------------------------------------------

Binary = Callable[[Builder, Tensor, Tensor], Tensor]


@lowering("aten::maximum", "aten::max.other", function=elementwise.maximum)
@lowering("aten::minimum", "aten::min.other", function=elementwise.minimum)
@lowering("aten::fmax", function=elementwise.maximum, skips_nan=True)
@lowering("aten::fmin", function=elementwise.minimum, skips_nan=True)
def extremum(
    b: Builder,
    self: Tensor | Scalar,
    other: Tensor | Scalar,
    function: Binary,
    skips_nan: bool = False,
) -> Tensor:
    x, y = b.promote(self, other)
    result = function(b, x, y)
    if not skips_nan or not x.is_floating_point:
        return result
    either = b.Where(b.IsNaN(y), x, result)
    return b.Where(b.IsNaN(x), y, either)


@lowering("aten::clamp", "aten::clamp.Tensor", "aten::clip", "aten::clip.Tensor")
@lowering("aten::clamp_min", "aten::clamp_min.Tensor", "aten::clamp_max", "aten::clamp_max.Tensor")
def clamp(
    b: Builder,
    self: Tensor,
    min: Tensor | Scalar | None = None,
    max: Tensor | Scalar | None = None,
) -> Tensor:
    given = [bound for bound in (min, max) if bound is not None]
    dtype = type_promotion.result_dtype(self, *given)
    x = b.cast(self, dtype)
    if any(isinstance(bound, float) and math.isnan(bound) for bound in given):
        return b.full_like(x, math.nan)
    if not any(isinstance(bound, Tensor) for bound in given):
        # Without a bound Clip keeps to finite numbers.
        none = (-math.inf, math.inf) if x.is_floating_point else (None, None)
        bounds = (
            default if bound is None else bound
            for bound, default in zip((min, max), none, strict=True)
        )
        lower, upper = (None if v is None else b.scalar(v, dtype) for v in bounds)
        return b.Clip(x, lower, upper)
    # Clip's bounds are numbers, and what it makes of a NaN bound is the runtime's choice.
    if min is not None:
        x = elementwise.maximum(b, x, b.scalar(min, dtype))
    if max is not None:
        x = elementwise.minimum(b, x, b.scalar(max, dtype))
    return x


# -- selection ---------------------------------------------------------------------------------


@lowering(
    "aten::where.self", "aten::where.ScalarOther", "aten::where.ScalarSelf", "aten::where.Scalar"
)
def where(b: Builder, condition: Tensor, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
    return elementwise.where(b, condition, *b.promote(self, other))
