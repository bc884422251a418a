"""Tensors made from sizes and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import sympy
import torch

from sardonyx.lower import promote
from sardonyx.lower.builder import Builder
from sardonyx.lower.registry import lowering
from sardonyx.lower.schemas import onnx_dtype
from sardonyx.lower.values import Dim, Dims, Ints, Scalar, Tensor

SMALL_COUNT = 1024
"""Up to this many elements a table of numbers is a constant; more are computed."""

# -- one value everywhere ------------------------------------------------------------------------

# What `empty` holds is undefined, so zeros are as good.
_FILLED = (
    (0, "zeros", "new_zeros", "zeros_like"),
    (1, "ones", "new_ones", "ones_like"),
    (0, "empty.memory_format", "new_empty", "empty_like"),
)


def _register_filled(value: int, of_size: str, new: str, like: str) -> None:
    @lowering(f"aten::{of_size}")
    def filled(b: Builder, size: Dims, dtype: torch.dtype | None = None) -> Tensor:
        return b.full(size, value, dtype or torch.get_default_dtype())

    @lowering(f"aten::{new}")
    def new_filled(
        b: Builder, self: Tensor, size: Dims, dtype: torch.dtype | None = None
    ) -> Tensor:
        return b.full(size, value, dtype or self.dtype)

    @lowering(f"aten::{like}")
    def filled_like(b: Builder, self: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        return b.full_like(self, value, dtype)


for _filled in _FILLED:
    _register_filled(*_filled)


@lowering("aten::empty_strided", "aten::empty_permuted")
def empty_laid_out(
    b: Builder,
    size: Dims,
    stride: Dims | None = None,
    physical_layout: Ints | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    return b.full(size, 0, dtype or torch.get_default_dtype())


@lowering("aten::new_empty_strided")
def new_empty_strided(
    b: Builder, self: Tensor, size: Dims, stride: Dims, dtype: torch.dtype | None = None
) -> Tensor:
    return b.full(size, 0, dtype or self.dtype)


@lowering("aten::full")
def full(
    b: Builder, size: Dims, fill_value: Tensor | Scalar, dtype: torch.dtype | None = None
) -> Tensor:
    return b.full(size, fill_value, dtype or promote.result_dtype(fill_value))


@lowering("aten::new_full")
def new_full(
    b: Builder,
    self: Tensor,
    size: Dims,
    fill_value: Tensor | Scalar,
    dtype: torch.dtype | None = None,
) -> Tensor:
    return b.full(size, fill_value, dtype or self.dtype)


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
        return b.cast(b.Range(*(b.scalar(n, torch.int64) for n in numbers)), dtype)
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


def _without_fraction(b: Builder, number: Tensor | Scalar) -> Tensor | Scalar:
    if isinstance(number, (int, float)):
        return int(number)
    return b.scalar(number, torch.int64)


def _evenly_spaced(
    b: Builder, start: Tensor | Scalar, end: Tensor | Scalar, steps: int, dtype: torch.dtype
) -> Tensor:
    """`steps` numbers from start to end, both included, in float64; counted from the nearer end.

    Only the ends are of `dtype`: those of integers lose their fractions, what lies between not yet.
    """
    first, last = (b.cast(b.scalar(e, dtype), torch.float64) for e in (start, end))
    gap = b.Div(b.Sub(last, first), float(max(steps - 1, 1)))
    index = b.cast(b.Range(0, b.scalar(steps, torch.int64), 1), torch.float64)
    from_start = b.Add(b.Mul(index, gap), first)
    from_end = b.Sub(last, b.Mul(b.Sub(float(steps - 1), index), gap))
    spaced: Tensor = b.Where(b.Less(index, float(steps // 2)), from_start, from_end)
    return from_start if steps == 1 else spaced


_LINSPACE = ("", ".Tensor_Tensor", ".Tensor_Scalar", ".Scalar_Tensor")


@lowering(*(f"aten::linspace{overload}" for overload in _LINSPACE))
def linspace(
    b: Builder,
    start: Tensor | Scalar,
    end: Tensor | Scalar,
    steps: int,
    dtype: torch.dtype | None = None,
) -> Tensor:
    dtype = dtype or torch.get_default_dtype()
    if isinstance(start, (int, float)) and isinstance(end, (int, float)) and steps <= SMALL_COUNT:
        return b.const(torch.linspace(start, end, steps, dtype=dtype))
    return b.cast(_evenly_spaced(b, start, end, steps, dtype), dtype)


@lowering(*(f"aten::logspace{overload}" for overload in _LINSPACE))
def logspace(
    b: Builder,
    start: Tensor | Scalar,
    end: Tensor | Scalar,
    steps: int,
    base: float = 10.0,
    dtype: torch.dtype | None = None,
) -> Tensor:
    dtype = dtype or torch.get_default_dtype()
    if isinstance(start, (int, float)) and isinstance(end, (int, float)) and steps <= SMALL_COUNT:
        return b.const(torch.logspace(start, end, steps, base=base, dtype=dtype))
    powers = b.Pow(b.scalar(base, torch.float64), _evenly_spaced(b, start, end, steps, dtype))
    return b.cast(powers, dtype)


# -- triangles and the diagonal ------------------------------------------------------------------


@lowering("aten::eye", "aten::eye.m")
def eye(b: Builder, n: Dim, m: Dim | None = None, dtype: torch.dtype | None = None) -> Tensor:
    dtype = dtype or torch.get_default_dtype()
    dims = [n, n if m is None else m]
    ones: Tensor = b.EyeLike(b.full(dims, 0, torch.float32), dtype=int(onnx_dtype(dtype)))
    return b.with_shape(ones, dims)


def _register_triangle(name: str, upper: int) -> None:
    @lowering(name)
    def triangle(b: Builder, self: Tensor, diagonal: Dim = 0) -> Tensor:
        k = None if diagonal == 0 else b.scalar(diagonal, torch.int64)
        result: Tensor = b.Trilu(self, k, upper=upper)
        return result


_register_triangle("aten::tril", 0)
_register_triangle("aten::triu", 1)


# -- tables, known as soon as their sizes are ----------------------------------------------------


def _register_indices(name: str, function: Callable[..., torch.Tensor]) -> None:
    @lowering(name)
    def indices(
        b: Builder, row: int, col: int, offset: int = 0, dtype: torch.dtype | None = torch.int64
    ) -> Tensor:
        return b.const(function(row, col, offset, dtype=dtype or torch.int64))


_register_indices("aten::tril_indices", torch.tril_indices)
_register_indices("aten::triu_indices", torch.triu_indices)

_WINDOWS: dict[str, tuple[Callable[..., torch.Tensor], tuple[str, ...]]] = {
    "bartlett_window": (torch.bartlett_window, ("", ".periodic")),
    "blackman_window": (torch.blackman_window, ("", ".periodic")),
    "hann_window": (torch.hann_window, ("", ".periodic")),
    "hamming_window": (
        torch.hamming_window,
        ("", ".periodic", ".periodic_alpha", ".periodic_alpha_beta"),
    ),
    "kaiser_window": (torch.kaiser_window, ("", ".periodic", ".beta")),
}


def _register_window(names: tuple[str, ...], function: Callable[..., torch.Tensor]) -> None:
    @lowering(*names)
    def window(
        b: Builder,
        window_length: int,
        periodic: bool = True,
        alpha: float | None = None,
        beta: float | None = None,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        shape = {k: v for k, v in (("alpha", alpha), ("beta", beta)) if v is not None}
        return b.const(function(window_length, periodic, **shape, dtype=dtype))


for _name, (_window, _overloads) in _WINDOWS.items():
    _register_window(tuple(f"aten::{_name}{o}" for o in _overloads), _window)
