"""Element-wise functions that several operators share and ONNX has only in parts.

Each does in a few nodes what ATen does, for every dtype that ONNX Runtime can be brought to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor, whole
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor

Unary = Callable[[Builder, Tensor], Tensor]


def in_floats(b: Builder, function: Callable[..., Tensor], *operands: Tensor | Scalar) -> Tensor:
    """`function` of the operands in a common float type; halves go through float32, as in ATen."""
    dtype = type_promotion.float_dtype(*operands)
    wide = torch.float32 if dtype.itemsize < 4 else dtype
    return b.cast(function(b, *b.promote(*operands, dtype=wide)), dtype)


def lowering_in_floats(
    *names: str, renamed: Mapping[str, str] | None = None
) -> Callable[[Unary], Unary]:
    """Register a function of one number for ATen overloads, as `in_floats` computes it."""

    def register(function: Unary) -> Unary:
        def of_self(b: Builder, self: Tensor) -> Tensor:
            return in_floats(b, function, self)

        of_self.__module__ = function.__module__  # where the form is found
        lowering(*names, renamed=renamed)(of_self)
        return function

    return register


def with_number(
    b: Builder,
    function: Callable[[Tensor, Tensor], Tensor],
    x: Tensor | Scalar,
    number: Tensor | Scalar,
    dtype: torch.dtype,
) -> Tensor:
    """`function` of two operands in `dtype`; a second that a half does not hold stays exact."""
    wide = type_promotion.computing_dtype(dtype, number)
    first = b.cast(b.scalar(x, dtype), wide)
    return b.cast(function(first, b.scalar(number, wide)), dtype)


def rounded_once(b: Builder, operands: Sequence[Tensor]) -> list[Tensor]:
    """The operands in the dtype that PyTorch computes with, to be rounded at the end."""
    return [b.cast(x, type_promotion.once_rounded_dtype(x.dtype)) for x in operands]


def where(b: Builder, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`x` where `condition` holds, else `y`; both have one dtype."""
    return b.Where(b.cast(condition, torch.bool), x, y)


def maximum(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """The larger of two; NaN if either is."""
    return _extremum(b, "Max", "Or", x, y)


def minimum(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    return _extremum(b, "Min", "And", x, y)


def _extremum(b: Builder, op: str, bool_op: str, x: Tensor, y: Tensor) -> Tensor:
    return b.op(bool_op if x.dtype == torch.bool else op, x, y)


def multiply(b: Builder, x: Tensor, factor: Scalar) -> Tensor:
    """`x * factor`, without a node for a factor of one."""
    if factor == 1:
        return x
    return b.And(x, bool(factor)) if x.dtype == torch.bool else b.Mul(x, factor)


def is_zero(b: Builder, x: Tensor) -> Tensor:
    return b.Not(x) if x.dtype == torch.bool else b.Equal(x, 0)


def sign_bit(b: Builder, x: Tensor) -> Tensor:
    """Whether the sign bit is set, -0.0 included (not that of a NaN)."""
    if not x.dtype.is_signed:
        return b.full_like(x, False, torch.bool)
    negative = b.Less(x, 0)
    if not x.is_floating_point:
        return negative
    return b.Or(negative, b.Less(b.Reciprocal(x), 0))


def truncate(b: Builder, x: Tensor) -> Tensor:
    """Rounding towards zero."""
    if not x.is_floating_point:
        return x
    return b.Mul(b.Sign(x), b.Floor(b.Abs(x)))


def log1p(b: Builder, x: Tensor) -> Tensor:
    """log(1 + x) to full precision near zero: what 1 + x rounds away is added back."""
    if isinstance(x, ComplexTensor):
        # Near 0 by |1 + z|^2 - 1 = x (2 + x) + y^2; elsewhere that could cancel and overflow.
        excess = b.Add(b.Mul(x.real, b.Add(x.real, 2.0)), b.Mul(x.imag, x.imag))
        near = b.Less(b.Max(b.Abs(x.real), b.Abs(x.imag)), 0.5)
        large = whole(b, b.Log(b.Add(x, 1.0)))
        small = b.Mul(log1p(b, excess), 0.5)
        return ComplexTensor(b.Where(near, small, large.real), large.imag)
    sum_ = b.Add(x, 1)
    lost = b.Div(b.Sub(x, b.Sub(sum_, 1)), sum_)
    # At -1 and infinity the lost part is 0/0 and inf - inf.
    return b.Add(b.Log(sum_), b.Where(b.IsNaN(lost), 0, lost))


def expm1(b: Builder, x: Tensor) -> Tensor:
    """exp(x) - 1 to full precision near zero, as tanh(x / 2) * (exp(x) + 1)."""
    if isinstance(x, ComplexTensor):  # exp(x) cos(y) - 1 without the cancellation
        half = b.Sin(b.Mul(x.imag, 0.5))
        real = b.Mul(expm1(b, x.real), b.Cos(x.imag))
        real = b.Sub(real, b.Mul(b.Mul(half, half), 2.0))
        return ComplexTensor(real, b.Mul(b.Exp(x.real), b.Sin(x.imag)))
    return b.Mul(b.Tanh(b.Mul(x, 0.5)), b.Add(b.Exp(x), 1))


def softplus(b: Builder, x: Tensor) -> Tensor:
    """log(1 + exp(x))."""
    if x.dtype == torch.float64:  # not among the runtime's Softplus types
        tail = log1p(b, b.Exp(b.Neg(b.Abs(x))))
        return b.Add(b.Max(x, 0.0), tail)
    return b.Softplus(x)
