"""Tensors made from sizes and numbers."""

from __future__ import annotations

import math
from typing import Any

import sympy
import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import axes
from sardonyx.lower.kernels.windows import floor_divided
from sardonyx.lower.onnx_types.schemas import onnx_dtype
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Dims, Ints, Scalar, Tensor

SMALL_COUNT = 1024
"""Up to this many elements a table of numbers is a constant; more are computed."""

# -- one value everywhere ------------------------------------------------------------------------

# What `empty` holds is undefined, so zeros are as good.


@lowering("aten::zeros", "aten::empty.memory_format", fill_value=0.0)
@lowering("aten::empty_strided", "aten::empty_permuted", fill_value=0.0)
@lowering("aten::ones", fill_value=1.0)
@lowering("aten::full")
def full(
    b: Builder,
    size: Dims,
    fill_value: Tensor | Scalar,
    dtype: torch.dtype | None = None,
    stride: Dims | None = None,
    physical_layout: Ints | None = None,
) -> Tensor:
    return b.full(size, fill_value, dtype or type_promotion.result_dtype(fill_value))


@lowering("aten::new_zeros", "aten::new_empty", "aten::new_empty_strided", fill_value=0)
@lowering("aten::new_ones", fill_value=1)
@lowering("aten::new_full")
def new_full(
    b: Builder,
    self: Tensor,
    size: Dims,
    fill_value: Tensor | Scalar,
    dtype: torch.dtype | None = None,
    stride: Dims | None = None,
) -> Tensor:
    return b.full(size, fill_value, dtype or self.dtype)


@lowering("aten::zeros_like", "aten::empty_like", fill_value=0)
@lowering("aten::ones_like", fill_value=1)
@lowering("aten::full_like")
def full_like(
    b: Builder, self: Tensor, fill_value: Tensor | Scalar, dtype: torch.dtype | None = None
) -> Tensor:
    return b.full_like(self, fill_value, dtype)


@lowering("aten::scalar_tensor")
def scalar_tensor(b: Builder, s: Tensor | Scalar, dtype: torch.dtype | None = None) -> Tensor:
    return b.scalar(s, dtype or torch.get_default_dtype())


# -- progressions --------------------------------------------------------------------------------


def _is_whole(number: Tensor | Scalar) -> bool:
    if isinstance(number, Tensor):
        return not number.is_floating_point
    if isinstance(number, sympy.Expr):
        return bool(number.is_integer)
    return isinstance(number, int)


@lowering("aten::arange", "aten::arange.start", "aten::arange.start_step")
def arange(
    b: Builder,
    end: Tensor | Scalar,
    start: Tensor | Scalar = 0,
    step: Tensor | Scalar = 1,
    dtype: torch.dtype | None = None,
) -> Tensor:
    numbers: tuple[Tensor | Scalar, ...] = (start, end, step)
    whole = all(map(_is_whole, numbers))
    if dtype is None:
        dtype = torch.int64 if whole else torch.get_default_dtype()
    if not whole and dtype == torch.int64:  # only here does PyTorch drop the fractions first
        numbers, whole = tuple(_without_fraction(b, n) for n in numbers), True
    if whole:
        return b.cast(_whole_range(b, *numbers), dtype)
    if not dtype.is_floating_point:
        raise b.refuse(f"a {dtype} range between fractions")
    # A runtime may sum up the steps, and its errors with them: multiply instead, in float64.
    first, last, stride = (b.scalar(n, torch.float64) for n in numbers)
    if all(n.const is not None for n in (first, last, stride)):
        known = [float(n.const) for n in (first, last, stride) if n.const is not None]
        count = b.scalar(math.ceil((known[1] - known[0]) / known[2]), torch.int64)
    else:
        count = b.cast(b.Ceil(b.Div(b.Sub(last, first), stride)), torch.int64)
    index = b.cast(b.Range(0, count, 1), torch.float64)
    return b.cast(b.Add(b.Mul(index, stride), first), dtype)


def _whole_range(
    b: Builder, start: Tensor | Scalar, end: Tensor | Scalar, step: Tensor | Scalar
) -> Tensor:
    first, last, stride = (b.scalar(n, torch.int64) for n in (start, end, step))
    if first.const is not None and last.const is not None and stride.const is not None:
        return b.Range(first, last, stride)
    # ONNX Runtime makes a slice of a Range that is an index, to which -1 is the last place.
    turns = isinstance(step, int) and step < 0
    if isinstance(step, int) and _is_never_negative(end if turns else start):
        return b.Range(first, last, stride)
    distance = b.Sub(first, last) if turns else b.Sub(last, first)
    if isinstance(step, int) and step:
        length = abs(step)
        count = distance if length == 1 else b.Div(b.Add(distance, length - 1), length)
    else:
        exact = (b.cast(n, torch.float64) for n in (distance, stride))
        count = b.cast(b.Ceil(b.Div(*exact)), torch.int64)
    index = b.Range(0, count, 1)
    return b.Add(index if step == 1 else b.Mul(index, stride), first)


def _is_never_negative(number: Tensor | Scalar) -> bool:
    if isinstance(number, Tensor):
        return number.const is not None and bool(number.const >= 0)
    if isinstance(number, sympy.Expr):
        return number.is_nonnegative is True
    return isinstance(number, int) and number >= 0


def _without_fraction(b: Builder, number: Tensor | Scalar) -> Tensor | Scalar:
    if isinstance(number, (int, float)):
        return int(number)
    return b.scalar(number, torch.int64)


@lowering("aten::linspace", "aten::linspace.Tensor_Tensor")
@lowering("aten::linspace.Tensor_Scalar", "aten::linspace.Scalar_Tensor")
def linspace(
    b: Builder,
    start: Tensor | Scalar,
    end: Tensor | Scalar,
    steps: Dim,
    dtype: torch.dtype | None = None,
) -> Tensor:
    dtype = dtype or torch.get_default_dtype()
    table = _small_table(torch.linspace, start, end, steps, dtype=dtype)
    if table is not None:
        return b.const(table)
    return b.with_shape(b.cast(_evenly_spaced(b, start, end, steps, dtype), dtype), [steps])


@lowering("aten::logspace", "aten::logspace.Tensor_Tensor")
@lowering("aten::logspace.Tensor_Scalar", "aten::logspace.Scalar_Tensor")
def logspace(
    b: Builder,
    start: Tensor | Scalar,
    end: Tensor | Scalar,
    steps: Dim,
    base: float = 10.0,
    dtype: torch.dtype | None = None,
) -> Tensor:
    dtype = dtype or torch.get_default_dtype()
    table = _small_table(torch.logspace, start, end, steps, base=base, dtype=dtype)
    if table is not None:
        return b.const(table)
    exponents = _evenly_spaced(b, start, end, steps, dtype)
    powers = b.Pow(b.scalar(base, torch.float64), exponents)
    return b.with_shape(b.cast(powers, dtype), [steps])


def _small_table(
    make: Any, start: Tensor | Scalar, end: Tensor | Scalar, steps: Dim, **options: Any
) -> torch.Tensor | None:
    """What PyTorch gives, where the ends are numbers and there are few steps."""
    are_known = isinstance(start, (int, float)) and isinstance(end, (int, float))
    if not are_known or not isinstance(steps, int) or steps > SMALL_COUNT:
        return None
    table: torch.Tensor = make(start, end, steps, **options)
    return table


def _evenly_spaced(
    b: Builder, start: Tensor | Scalar, end: Tensor | Scalar, steps: Dim, dtype: torch.dtype
) -> Tensor:
    """Both ends are included; each number is counted from the nearer one, in float64."""
    # The ends of integers lose their fractions, what lies between not yet.
    first, last = (b.cast(b.scalar(e, dtype), torch.float64) for e in (start, end))
    gap = b.Div(b.Sub(last, first), b.scalar(sympy.Max(steps - 1, 1), torch.float64))
    index = b.cast(axes.arange(b, steps), torch.float64)
    from_start = b.Add(b.Mul(index, gap), first)
    from_end = b.Sub(last, b.Mul(b.Sub(b.scalar(steps - 1, torch.float64), index), gap))
    middle = b.scalar(sympy.Max(floor_divided(steps, 2), 1), torch.float64)
    return b.Where(b.Less(index, middle), from_start, from_end)


# -- triangles and the diagonal ------------------------------------------------------------------


@lowering("aten::eye", "aten::eye.m")
def eye(b: Builder, n: Dim, m: Dim | None = None, dtype: torch.dtype | None = None) -> Tensor:
    dtype = dtype or torch.get_default_dtype()
    dims = [n, n if m is None else m]
    ones = b.EyeLike(b.full(dims, 0, torch.float32), dtype=int(onnx_dtype(dtype.to_real())))
    return b.with_shape(ones, dims)


@lowering("aten::tril", upper=0)
@lowering("aten::triu", upper=1)
def triangle(b: Builder, self: Tensor, diagonal: Dim = 0, *, upper: int) -> Tensor:
    k = None if diagonal == 0 else b.scalar(diagonal, torch.int64)
    return b.Trilu(self, k, upper=upper)


# -- tables, constant where their sizes are numbers ----------------------------------------------


@lowering("aten::tril_indices", is_lower=True)
@lowering("aten::triu_indices", is_lower=False)
def indices_of_triangle(
    b: Builder,
    row: Dim,
    col: Dim,
    offset: Dim = 0,
    dtype: torch.dtype | None = torch.int64,
    *,
    is_lower: bool,
) -> Tensor:
    dtype = dtype or torch.int64
    if isinstance(row, int) and isinstance(col, int) and isinstance(offset, int):
        function = torch.tril_indices if is_lower else torch.triu_indices
        return b.const(function(row, col, offset, dtype=dtype))
    rows = b.unsqueeze(b.Add(axes.arange(b, row), b.scalar(offset, torch.int64)), [1])
    compare = b.GreaterOrEqual if is_lower else b.LessOrEqual
    return b.cast(b.NonZero(compare(rows, axes.arange(b, col))), dtype)


@lowering("aten::fft_fftfreq", half=False)
@lowering("aten::fft_rfftfreq", half=True)
def frequencies(
    b: Builder, n: Dim, d: float = 1.0, dtype: torch.dtype | None = None, *, half: bool
) -> Tensor:
    dtype = dtype or torch.get_default_dtype()
    if isinstance(n, int):
        return b.const((torch.fft.rfftfreq if half else torch.fft.fftfreq)(n, d, dtype=dtype))
    if half:
        turns = axes.arange(b, floor_divided(n, 2) + 1)
    else:  # the second half are the negative ones
        index, size = axes.arange(b, n), b.scalar(n, torch.int64)
        middle = b.scalar(floor_divided(n + 1, 2), torch.int64)
        turns = b.Where(b.Less(index, middle), index, b.Sub(index, size))
    length = b.Mul(b.scalar(n, torch.float64), d)
    return b.cast(b.Div(b.cast(turns, torch.float64), length), dtype)
