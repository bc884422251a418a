"""Operators whose sizes are numbers in PyTorch's schemas, with schemas that take symbols.

PyTorch would pass the example's size to such a call. An operator of ours is called instead, which
is recorded as the operator of ATen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch.nn import functional as F

from sardonyx import _torch_private
from sardonyx.aten.pytree import leaves_in

_OPERATORS = torch.library.Library("sardonyx", "FRAGMENT")  # type: ignore[no-untyped-call]
ATEN_FORMS: dict[Any, Any] = {}
"""By operator of ours, the one of ATen."""


@cache
def _defined(name: str) -> Any:
    """Our operator of this name, with the overloads that ATen has; made when first called."""
    packet = getattr(torch.ops.aten, name)
    for overload in packet.overloads():
        if overload.endswith("out"):
            continue
        of_aten = getattr(packet, overload)
        schema = re.sub(r"\bint\b", "SymInt", str(of_aten._schema).removeprefix("aten::"))
        _OPERATORS.define(schema)  # type: ignore[no-untyped-call]
        ours = getattr(getattr(torch.ops.sardonyx, name), overload)
        ATEN_FORMS[ours] = of_aten
    return getattr(torch.ops.sardonyx, name)


def _recorded_with_symbols(name: str) -> Callable[..., Any]:
    def call(func: Any, *args: Any, **kwargs: Any) -> Any:
        if not _has_symbol([*args, *kwargs.values()]):
            return func(*args, **kwargs)
        named = {
            "self" if k == "input" else k: argument
            for k, argument in kwargs.items()
            if k not in ("out", "requires_grad")
        }
        return _defined(name)(*args, **named)

    return call


def _adaptive_avg_pool1d(func: Any, input: torch.Tensor, output_size: Any) -> Any:
    call = _recorded_with_symbols("adaptive_avg_pool1d")
    return call(func, input, _per_axis(output_size, 1))


def _adaptive_max_pool(spatial: int) -> Callable[..., Any]:
    def call(func: Any, input: torch.Tensor, output_size: Any, return_indices: bool = False) -> Any:
        counts = zip(_per_axis(output_size, spatial), input.shape[-spatial:], strict=True)
        sizes = [size if count is None else count for count, size in counts]
        if not _has_symbol(sizes):
            return func(input, output_size, return_indices)
        values, indices = _defined(f"adaptive_max_pool{spatial}d")(input, sizes)
        return (values, indices) if return_indices else values

    return call


def _pool_by(reduction: Callable[..., torch.Tensor], spatial: int) -> Callable[..., Any]:
    """Along an axis that has the length of the windows there is one, and nothing to pool."""

    def call(func: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(_POOL_ARGUMENTS, args, strict=False)) | kwargs
        input, kernel = given.pop("input"), _per_axis(given.pop("kernel_size"), spatial)
        steps = _per_axis(given.pop("stride", None) or kernel, spatial)
        whole = [axis for axis in range(-spatial, 0) if _is_size(kernel[axis], input.shape[axis])]
        is_plain = all(
            _per_axis(given[name], spatial) == [_PLAIN[name]] * spatial for name in given
        )
        if not whole or not is_plain or not input.is_floating_point():
            return func(*args, **kwargs)
        for axis in whole:
            kernel[axis] = steps[axis] = 1
        reduced = reduction(input, whole, keepdim=True)
        return reduced if len(whole) == spatial else func(reduced, kernel, steps)

    return call


_PLAIN = {
    "padding": 0,
    "ceil_mode": False,
    "count_include_pad": True,
    "divisor_override": None,
    "dilation": 1,
    "return_indices": False,
}
_POOL_ARGUMENTS = ("input", "kernel_size", "stride", *_PLAIN)
"""In the order of average pooling; max pooling has names for all that follow the kernel."""


def _div(func: Any, input: Any, other: Any, **kwargs: Any) -> Any:
    """Of numbers, PyTorch makes tensors; its meta function takes plain ones alone."""
    is_symbol = isinstance(input, torch.SymInt)
    return func(
        torch.scalar_tensor(input, dtype=torch.int64) if is_symbol else input, other, **kwargs
    )


def _per_axis(sizes: Any, spatial: int) -> list[Any]:
    return list(sizes) if isinstance(sizes, (list, tuple)) else [sizes] * spatial


def _is_size(number: Any, size: Any) -> bool:
    return isinstance(number, torch.SymInt) and _torch_private.same_size(number, size)


def _has_symbol(arguments: Iterable[Any]) -> bool:
    return any(isinstance(leaf, torch.SymInt) for leaf in leaves_in(list(arguments)))


_WINDOWS = ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window")
SYMINT_OVERRIDES: dict[Any, Callable[..., Any]] = {
    **{
        getattr(torch, name): _recorded_with_symbols(name)
        for name in ("linspace", "logspace", "tril_indices", "triu_indices", *_WINDOWS)
    },
    torch.fft.fftfreq: _recorded_with_symbols("fft_fftfreq"),
    torch.fft.rfftfreq: _recorded_with_symbols("fft_rfftfreq"),
    **dict.fromkeys((torch.istft, torch.Tensor.istft), _recorded_with_symbols("istft")),
    **dict.fromkeys((torch.div, torch.floor_divide), _div),
    F.one_hot: _recorded_with_symbols("one_hot"),
    F.adaptive_avg_pool1d: _adaptive_avg_pool1d,
    **{
        getattr(F, f"adaptive_max_pool{spatial}d{suffix}"): _adaptive_max_pool(spatial)
        for spatial in (1, 2, 3)
        for suffix in ("", "_with_indices")
    },
    **{getattr(F, f"avg_pool{spatial}d"): _pool_by(torch.mean, spatial) for spatial in (1, 2, 3)},
    **{getattr(F, f"max_pool{spatial}d"): _pool_by(torch.amax, spatial) for spatial in (1, 2, 3)},
}
"""By function of torch, one that takes the function and its arguments."""
