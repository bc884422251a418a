"""Discrete Fourier transforms, of signals and of their windows."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor, conjugate, from_pairs, to_pairs, whole
from sardonyx.lower.kernels.windows import floor_divided
from sardonyx.lower.ops.fold import col2im
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Dims, Ints, Tensor, product_of

_BY_ROOT_N, _BY_N = 1, 2
"""ATen's fft_norm_mode; 0 leaves the sums as they are."""


# -- the three transforms every function of torch.fft is made of ----------------------------------


@lowering("aten::_fft_c2c")
def fft_c2c(
    b: Builder, self: ComplexTensor, dim: Ints, normalization: int, forward: bool
) -> ComplexTensor:
    sizes = [self.dim(axis) for axis in dim]
    pairs = _transformed(b, to_pairs(b, self), _axes(dim, self.rank), inverse=not forward)
    return from_pairs(b, _normalized(b, pairs, sizes, normalization, divided=not forward))


@lowering("aten::_fft_r2c")
def fft_r2c(
    b: Builder, self: Tensor, dim: Ints, normalization: int, onesided: bool
) -> ComplexTensor:
    *first, last = _axes(dim, self.rank)
    sizes = [self.dim(axis) for axis in dim]
    signal = b.unsqueeze(self, [self.rank])
    pairs = _dft(b, signal, last, onesided=onesided, inexact=_is_inexact(sizes))
    pairs = _transformed(b, pairs, first)
    return from_pairs(
        b, _normalized(b, b.cast(pairs, self.dtype), sizes, normalization, divided=False)
    )


@lowering("aten::_fft_c2r")
def fft_c2r(
    b: Builder, self: ComplexTensor, dim: Ints, normalization: int, last_dim_size: Dim
) -> Tensor:
    *first, last = _axes(dim, self.rank)
    sizes = [*(self.dim(axis) for axis in first), last_dim_size]
    dims = [last_dim_size if axis == last else d for axis, d in enumerate(b.dims(self))]
    half = _transformed(b, to_pairs(b, self), first, inverse=True)
    full = _mirrored(b, half, last, last_dim_size)
    signal = _dft(b, full, last, inverse=True, inexact=_is_inexact([last_dim_size]))
    real = b.Gather(b.cast(signal, self.real.dtype), 0, axis=self.rank)
    return b.with_shape(_normalized(b, real, sizes, normalization, divided=True), dims)


def _axes(dim: Sequence[int], rank: int) -> list[int]:
    return [axis % rank for axis in dim]


def _half(size: Dim) -> Dim:
    """How many frequencies of a real signal's spectrum tell all of it."""
    half: Dim = size // 2 + 1 if isinstance(size, int) else sympy.floor(size / 2) + 1
    return half


def _mirrored(b: Builder, half: Tensor, axis: int, size: Dim) -> Tensor:
    """The whole spectrum of a real signal of `size` samples: its second half is the first one
    backwards, conjugated."""
    kept = _half(size)
    half = b.slice(half, axis, 0, kept)
    # Of an even number the middle, of any number the first stands alone.
    rest: Dim = size - kept
    backwards = b.slice(half, axis, rest, 0, -1)
    conjugated = b.Mul(backwards, torch.tensor([1.0, -1.0], dtype=half.dtype))
    result = b.Concat(half, conjugated, axis=axis)
    return b.with_shape(result, [size if a == axis else None for a in range(half.rank)])


def _transformed(
    b: Builder, pairs: Tensor, axes: Sequence[int], *, inverse: bool = False
) -> Tensor:
    sizes = [pairs.shape[axis] if pairs.shape else None for axis in axes]
    result = pairs
    for axis in axes:
        result = _dft(b, result, axis, inverse=inverse, inexact=_is_inexact(sizes))
    return b.cast(result, pairs.dtype)


def _is_inexact(sizes: Sequence[Dim | None]) -> bool:
    """Whether ONNX Runtime's way for other sizes than powers of 2 may be taken. In float32 it
    loses up to four digits."""
    return not all(isinstance(size, int) and size & (size - 1) == 0 for size in sizes)


def _dft(
    b: Builder,
    pairs: Tensor,
    axis: int,
    *,
    inverse: bool = False,
    onesided: bool = False,
    inexact: bool,
) -> Tensor:
    """One transform; an inverse one is divided by its size. In float64 where `inexact`."""
    dims = list(pairs.shape or ())
    if onesided:
        size = dims[axis]
        dims[axis] = None if size is None else _half(size)
    dims[-1] = 2
    wide = b.cast(pairs, torch.float64) if inexact else pairs
    result = b.DFT(
        wide,
        None,
        b.scalar(axis),
        inverse=int(inverse) or None,
        onesided=int(onesided) or None,
    )
    return b.with_shape(result, dims)


def _normalized(
    b: Builder, x: Tensor, sizes: Sequence[Dim], normalization: int, *, divided: bool
) -> Tensor:
    """`x` scaled as asked; `divided` says that it was divided by the number of elements."""
    count = product_of(sizes)
    if normalization == _BY_N:
        power = 0.0 if divided else -1.0
    elif normalization == _BY_ROOT_N:
        power = 0.5 if divided else -0.5
    else:
        power = 1.0 if divided else 0.0
    if power == 0:
        return x
    if isinstance(count, int):
        return b.Mul(x, float(count) ** power if count else 1.0)
    return b.Mul(x, b.Pow(b.scalar(count, x.dtype), b.scalar(power, x.dtype)))


# -- torch.fft ------------------------------------------------------------------------------------


def transform(
    b: Builder,
    self: Tensor,
    s: Dims | Dim | None = None,
    dim: Ints | int | None = None,
    norm: str | None = None,
    *,
    kind: str,
) -> Tensor:
    sizes = [s] if isinstance(s, (int, sympy.Expr)) else s
    if dim is None:
        dim = list(range(self.rank) if sizes is None else range(-len(sizes), 0))
    axes = _axes([dim] if isinstance(dim, int) else dim, self.rank)
    forward = kind in ("fft", "rfft", "hfft")
    normalization = {
        None: 0 if forward else _BY_N,
        "backward": 0 if forward else _BY_N,
        "ortho": _BY_ROOT_N,
        "forward": _BY_N if forward else 0,
    }[norm]
    x = b.cast(self, type_promotion.float_dtype(self))
    wanted: list[Dim | None] = [None if size == -1 else size for size in sizes or [-1] * len(axes)]
    if kind in ("irfft", "hfft"):
        if not axes:
            raise b.refuse("a real signal of no dims")
        z = whole(b, conjugate(b, x) if kind == "hfft" else x)
        last = 2 * (z.dim(axes[-1]) - 1) if wanted[-1] is None else wanted[-1]
        z = _complex_resized(b, z, axes, [*wanted[:-1], _half(last)])
        return fft_c2r(b, z, axes, normalization, last)
    if sizes is not None:
        if isinstance(x, ComplexTensor):
            x = _complex_resized(b, x, axes, wanted)
        else:
            x = _resized(b, x, axes, wanted)
    if isinstance(x, ComplexTensor) or not axes:
        return fft_c2c(b, whole(b, x), axes, normalization, forward)
    onesided = kind in ("rfft", "ihfft")
    spectrum = fft_r2c(b, x, axes, normalization, onesided)
    # The inverse transform of a real signal is the conjugate of the other one.
    return spectrum if forward else conjugate(b, spectrum)


for _kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    lowering(f"aten::fft_{_kind}", renamed={"n": "s"}, kind=_kind)(transform)
    lowering(f"aten::fft_{_kind}2", f"aten::fft_{_kind}n", kind=_kind)(transform)


def _complex_resized(
    b: Builder, z: ComplexTensor, axes: Sequence[int], sizes: Sequence[Dim | None]
) -> ComplexTensor:
    pairs = to_pairs(b, z)
    resized = _resized(b, pairs, axes, sizes)
    return z if resized is pairs else from_pairs(b, resized)


def _resized(b: Builder, x: Tensor, axes: Sequence[int], sizes: Sequence[Dim | None]) -> Tensor:
    """Cut or filled with zeros at the end of each axis; None leaves it as it is."""
    for axis, size in zip(axes, sizes, strict=True):
        own = x.dim(axis)
        if size is None or size == own:
            continue
        dims = [size if a == axis else d for a, d in enumerate(b.dims(x))]
        known = isinstance(size, int) and isinstance(own, int)
        if not known or own > size:
            x = b.slice(x, axis, 0, size)
        if not known or own < size:
            zero = b.shape([0])
            missing = b.Max(b.Sub(b.size(size), b.size(own)), zero)
            x = b.Pad(x, b.Concat(zero, missing, axis=0), None, b.shape([axis]))
        x = b.with_shape(x, dims)
    return x


# -- short-time transforms ------------------------------------------------------------------------


@lowering("aten::stft", "aten::stft.center")
def stft(
    b: Builder,
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = False,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    if center:  # torch.stft itself pads before it comes here
        raise b.refuse("center=True of the operator itself is not supported, only torch.stft's")
    if onesided is None:
        onesided = not isinstance(self, ComplexTensor) and not isinstance(window, ComplexTensor)
    step = hop_length or n_fft // 4
    windows = [window.real, window.imag] if isinstance(window, ComplexTensor) else [window]
    found = [
        _frames(
            b,
            self,
            n_fft,
            step,
            _window(b, n_fft, win_length, part, self.dtype.to_real()),
            onesided,
        )
        for part in windows
    ]
    frames = found[0]
    if len(found) == 2:  # the transform is linear in its window
        first, second = (from_pairs(b, pairs) for pairs in found)
        joined = b.Sub(first.real, second.imag), b.Add(first.imag, second.real)
        frames = to_pairs(b, ComplexTensor(*joined))
    if normalized:
        frames = b.Mul(frames, n_fft**-0.5)
    return from_pairs(b, frames) if return_complex else frames


def _frames(
    b: Builder,
    x: Tensor,
    n_fft: int,
    step: int,
    window: Tensor,
    onesided: bool,
) -> Tensor:
    """The transforms of all frames as pairs: [batch, frequency, time, 2]."""
    signal = to_pairs(b, x) if isinstance(x, ComplexTensor) else b.unsqueeze(x, [x.rank])
    if x.rank == 1:
        signal = b.unsqueeze(signal, [0])
    wide = torch.float64 if _is_inexact([n_fft]) else signal.dtype
    frames = b.STFT(
        b.cast(signal, wide),
        b.scalar(step),
        b.cast(window, wide),
        b.scalar(n_fft),
        onesided=int(onesided),
    )
    count = floor_divided(signal.dim(1) - n_fft, step) + 1
    frames = b.with_shape(frames, [signal.dim(0), count, n_fft // 2 + 1 if onesided else n_fft, 2])
    frames = b.transpose(b.cast(frames, signal.dtype), [0, 2, 1, 3])
    return b.squeeze(frames, [0]) if x.rank == 1 else frames


def _window(
    b: Builder, n_fft: int, win_length: int | None, window: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """The window in the middle of a frame."""
    length = n_fft if win_length is None else win_length
    shape = b.full([length], 1, dtype) if window is None else b.cast(window, dtype)
    before = (n_fft - length) // 2
    after = n_fft - length - before
    return b.Pad(shape, [before, after]) if before or after else shape


@lowering("aten::istft")
def istft(
    b: Builder,
    self: ComplexTensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Dim | None = None,
    return_complex: bool = False,
) -> Tensor:
    if isinstance(window, ComplexTensor):
        raise b.refuse("complex windows have no ONNX form")
    hop = hop_length or n_fft // 4
    alone = self.rank == 2
    spectra = to_pairs(b, self)
    spectra = b.unsqueeze(spectra, [0]) if alone else spectra
    batch, count = spectra.dim(0), spectra.dim(2)
    if not return_complex:  # of a whole spectrum too PyTorch takes the first half alone
        spectra = _mirrored(b, spectra, 1, n_fft)
    frames = _transformed(b, spectra, [1], inverse=True)
    if normalized:
        frames = b.Mul(frames, n_fft**0.5)
    shape = _window(b, n_fft, win_length, window, self.real.dtype)
    column = b.unsqueeze(shape, [0, 2])
    total = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    end: Dim = start + length if length is not None else total - start

    def added(columns: Tensor) -> Tensor:
        """Overlapping frames added up, cut to the requested range."""
        line = col2im(b, columns, [1, total], [1, n_fft], [1, 1], [0, 0], [1, hop])
        line = b.reshape(line, [columns.dim(0), total])
        return b.slice(line, 1, start, end)

    squares = b.expand(b.Mul(column, column), [1, n_fft, count])
    envelope = added(squares)
    parts = []
    for index in range(2 if return_complex else 1):
        part = b.with_shape(b.Gather(frames, index, axis=3), [batch, n_fft, count])
        signal = b.Div(added(b.Mul(part, column)), envelope)
        if length is not None:
            signal = b.with_shape(_padded_to(b, signal, length), [batch, length])
        parts.append(b.squeeze(signal, [0]) if alone else signal)
    return ComplexTensor(*parts) if return_complex else parts[0]


def _padded_to(b: Builder, signal: Tensor, length: Dim) -> Tensor:
    missing = b.Sub(b.shape([length]), b.Shape(signal, start=1, end=2))
    zeros = b.const(torch.zeros(1, dtype=torch.int64))
    ends = b.Concat(zeros, zeros, zeros, b.Max(missing, zeros), axis=0)
    return b.Pad(signal, ends)
