"""Windows of signals: constants where their length is a number, else computed."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.ops.special_bessel import i0
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Tensor

Form = Callable[[Builder, Tensor, float | None, float | None], Tensor]
"""A window at places between 0 and 1, with its two numbers."""


def _triangle(b: Builder, place: Tensor, alpha: float | None, beta: float | None) -> Tensor:
    return b.Sub(1.0, b.Abs(b.Sub(b.Mul(place, 2.0), 1.0)))


def _wave(b: Builder, place: Tensor, periods: int, size: float) -> Tensor:
    return b.Mul(b.Cos(b.Mul(place, 2 * math.pi * periods)), size)


def _blackman(b: Builder, place: Tensor, alpha: float | None, beta: float | None) -> Tensor:
    return b.Add(b.Sub(_wave(b, place, 2, 0.08), _wave(b, place, 1, 0.5)), 0.42)


def _raised_wave(alpha_default: float, beta_default: float) -> Form:
    def form(b: Builder, place: Tensor, alpha: float | None, beta: float | None) -> Tensor:
        size = beta_default if beta is None else beta
        middle = alpha_default if alpha is None else alpha
        return b.Sub(middle, _wave(b, place, 1, size))

    return form


def _kaiser(b: Builder, place: Tensor, alpha: float | None, beta: float | None) -> Tensor:
    steepness = 12.0 if beta is None else beta
    from_middle = b.Sub(b.Mul(place, 2.0), 1.0)
    rest = b.Max(b.Sub(1.0, b.Mul(from_middle, from_middle)), 0.0)
    peak = float(torch.special.i0(torch.tensor(steepness, dtype=torch.float64)))
    return b.Div(i0(b, b.Mul(b.Sqrt(rest), steepness)), peak)


_WINDOWS: dict[str, tuple[Callable[..., torch.Tensor], Form, tuple[str, ...]]] = {
    "bartlett_window": (torch.bartlett_window, _triangle, ("", ".periodic")),
    "blackman_window": (torch.blackman_window, _blackman, ("", ".periodic")),
    "hann_window": (torch.hann_window, _raised_wave(0.5, 0.5), ("", ".periodic")),
    "hamming_window": (
        torch.hamming_window,
        _raised_wave(0.54, 0.46),
        ("", ".periodic", ".periodic_alpha", ".periodic_alpha_beta"),
    ),
    "kaiser_window": (torch.kaiser_window, _kaiser, ("", ".periodic", ".beta")),
}


def window(
    b: Builder,
    window_length: Dim,
    periodic: bool = True,
    alpha: float | None = None,
    beta: float | None = None,
    dtype: torch.dtype | None = None,
    *,
    function: Callable[..., torch.Tensor],
    form: Form,
) -> Tensor:
    if isinstance(window_length, int):
        shape = {k: v for k, v in (("alpha", alpha), ("beta", beta)) if v is not None}
        return b.const(function(window_length, periodic, **shape, dtype=dtype))
    dtype = dtype or torch.get_default_dtype()
    index = b.cast(arange(b, window_length), torch.float64)
    last = b.scalar(window_length if periodic else window_length - 1, torch.float64)
    # Places are exact to the digits of float64; what is made of them need not be.
    place = b.cast(b.Div(index, last), torch.promote_types(dtype, torch.float32))
    is_single = b.Equal(b.scalar(window_length, torch.int64), 1)
    values = b.Where(is_single, b.scalar(1, place.dtype), form(b, place, alpha, beta))
    return b.with_shape(b.cast(values, dtype), [window_length])


for _name, (_function, _form, _overloads) in _WINDOWS.items():
    _names = (f"aten::{_name}{overload}" for overload in _overloads)
    lowering(*_names, function=_function, form=_form)(window)
