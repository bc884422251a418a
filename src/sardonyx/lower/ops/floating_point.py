"""Floating-point numbers taken apart: mantissa and exponent, and the next number."""

from __future__ import annotations

import math

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("aten::frexp.Tensor")
def frexp(b: Builder, self: Tensor) -> tuple[Tensor, Tensor]:
    if not self.is_floating_point:
        raise b.refuse("frexp of integers")
    x = b.cast(self, _wide(self.dtype))
    fraction, exponent = _parts(b, b.Abs(x))
    mantissa = b.Where(b.Less(x, 0), b.Neg(fraction), fraction)
    # Zeros, infinities and NaN are their own mantissas.
    plain = b.Or(b.Equal(x, 0), b.Or(b.IsInf(x), b.IsNaN(x)))
    mantissa = b.Where(plain, x, mantissa)
    exponent = b.Where(plain, 0, exponent)
    return b.cast(mantissa, self.dtype), b.cast(exponent, torch.int32)


@lowering("aten::nextafter")
def nextafter(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    given, towards = b.promote(self, other)
    dtype = given.dtype
    limits = torch.finfo(dtype)
    digits = 1 - round(math.log2(limits.eps))
    smallest = round(math.log2(limits.smallest_normal)) + 1 - digits
    x, towards = b.cast(given, _wide(dtype)), b.cast(towards, _wide(dtype))
    magnitude = b.Abs(x)
    fraction, exponent = _parts(b, magnitude)
    outward = b.Equal(b.Greater(towards, x), b.Greater(x, 0))
    # Below a power of two numbers lie twice as close.
    inward_power = b.And(b.Equal(fraction, 0.5), b.Not(outward))
    place = b.Sub(b.Sub(exponent, digits), b.cast(inward_power, x.dtype))
    distance = b.Pow(b.scalar(2, x.dtype), b.Max(place, float(smallest)))
    moved = b.Where(outward, b.Add(magnitude, distance), b.Sub(magnitude, distance))
    moved = b.Where(b.IsInf(x), limits.max, moved)
    result = b.Where(b.Less(x, 0), b.Neg(moved), moved)
    from_zero = b.Mul(b.Sign(towards), b.scalar(2.0**smallest, x.dtype))
    result = b.Where(b.Equal(x, 0), from_zero, result)
    result = b.Where(b.Equal(x, towards), towards, result)
    result = b.Where(b.Or(b.IsNaN(x), b.IsNaN(towards)), math.nan, result)
    return b.cast(result, dtype)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype.itemsize < 4 else dtype


def _parts(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """A fraction in [0.5, 1) and a whole exponent, for x above 0 and finite."""
    lift = 2.0 ** (64 if x.dtype == torch.float64 else 32)
    tiny = b.Less(x, torch.finfo(x.dtype).smallest_normal)
    normal = b.Where(tiny, b.Mul(x, lift), x)
    exponent = b.Add(b.Floor(b.Mul(b.Log(normal), 1 / math.log(2))), 1)
    half = b.Floor(b.Mul(exponent, 0.5))  # the power itself may be beyond the type
    fraction = b.Mul(normal, _power_of_two(b, b.Neg(half)))
    fraction = b.Mul(fraction, _power_of_two(b, b.Sub(half, exponent)))
    # The logarithm rounds: near a power of two the exponent is one off.
    large, small = b.GreaterOrEqual(fraction, 1), b.Less(fraction, 0.5)
    fraction = b.Where(large, b.Mul(fraction, 0.5), b.Where(small, b.Mul(fraction, 2), fraction))
    step = b.Sub(b.cast(large, x.dtype), b.cast(small, x.dtype))
    exponent = b.Add(exponent, step)
    exponent = b.Where(tiny, b.Sub(exponent, math.log2(lift)), exponent)
    return fraction, exponent


def _power_of_two(b: Builder, exponent: Tensor) -> Tensor:
    return b.Pow(b.scalar(2, exponent.dtype), exponent)
