"""Hashes of tensors: the bits of all elements, combined by exclusive or."""

from __future__ import annotations

import math

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import at_least_1d
from sardonyx.lower.kernels.integer_reductions import combined_by_halves
from sardonyx.lower.kernels.reductions import axes_of
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Ints, Tensor, product_of

_MANTISSA_BITS = 52
_LEAST_EXPONENT, _LARGEST_EXPONENT = -1022, 1023
_INFINITY = 0x7FF << _MANTISSA_BITS
_NAN = _INFINITY | 1 << (_MANTISSA_BITS - 1)


@lowering("aten::hash_tensor")
def hash_tensor(
    b: Builder, self: Tensor, dim: Ints | None = None, *, keepdim: bool = False, mode: int = 0
) -> Tensor:
    if mode != 0:
        raise b.refuse(f"a hash of mode {mode}")
    axes = axes_of(self, dim)
    count = product_of(self.dim(axis) for axis in axes)
    if not isinstance(count, int):
        raise b.refuse("how many elements are hashed together is not known at export time")
    bits = _bits_of_double(b, self) if self.is_floating_point else b.cast(self, torch.int64)
    kept = [axis for axis in range(self.rank) if axis not in axes]
    rest = [self.dim(axis) for axis in kept]
    rows = b.reshape(b.transpose(bits, [*axes, *kept]), [count, *rest])
    combined = combined_by_halves(b, "BitwiseXor", at_least_1d(b, rows), 0, count)
    hashed = b.cast(combined, torch.uint64)
    if not keepdim:
        return b.reshape(hashed, rest)
    return b.reshape(hashed, [1 if axis in axes else self.dim(axis) for axis in range(self.rank)])


def _bits_of_double(b: Builder, x: Tensor) -> Tensor:
    """The elements as IEEE doubles, their bits as int64, computed: few runtimes reinterpret."""
    wide = b.cast(x, torch.float64)
    size = b.Abs(wide)
    is_zero, is_infinite, is_nan = b.Equal(size, 0), b.IsInf(size), b.IsNaN(size)
    special = b.Or(is_zero, b.Or(is_infinite, is_nan))
    number = b.Where(special, b.scalar(1.0, torch.float64), size)
    exponent = b.Floor(b.Div(b.Log(number), math.log(2)))
    exponent = b.Max(b.Min(exponent, _LARGEST_EXPONENT), _LEAST_EXPONENT)
    mantissa = b.Div(number, b.Pow(b.scalar(2.0, torch.float64), exponent))
    # The logarithm may have been rounded to the next integer.
    too_small = b.GreaterOrEqual(mantissa, 2.0)
    too_large = b.And(b.Less(mantissa, 1.0), b.Greater(exponent, _LEAST_EXPONENT))
    step = b.Sub(b.cast(too_small, torch.float64), b.cast(too_large, torch.float64))
    exponent = b.Add(exponent, step)
    mantissa = b.Div(number, b.Pow(b.scalar(2.0, torch.float64), exponent))
    # The leading one of the mantissa, which subnormal numbers lack, counts the exponent up.
    biased = b.cast(b.Sub(exponent, _LEAST_EXPONENT), torch.int64)
    fraction = b.cast(b.Mul(mantissa, 2.0**_MANTISSA_BITS), torch.int64)
    bits = b.Add(b.Mul(biased, 2**_MANTISSA_BITS), fraction)
    bits = b.Where(is_zero, b.scalar(0, torch.int64), bits)
    bits = b.Where(is_infinite, b.scalar(_INFINITY, torch.int64), bits)
    bits = b.Where(is_nan, b.scalar(_NAN, torch.int64), bits)
    is_negative = b.Less(b.Where(is_zero, b.Div(1.0, wide), wide), 0)
    return b.Where(is_negative, b.Add(bits, b.scalar(-(2**63), torch.int64)), bits)
