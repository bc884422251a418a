"""Discrete Fourier transforms as products with matrices of cosines and sines."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError
from sardonyx.legalize.emitter import Emitter, constant_int, rank_of, static_dim


def _int_scalar(b: Emitter, number: int) -> ir.Value:
    return b.const(number, ir.DataType.INT64)


def _as_scalar(b: Emitter, value: ir.Value) -> ir.Value:
    return b.Reshape(b.cast(value, ir.DataType.INT64), b.const([], ir.DataType.INT64))


def fourier_transform(
    b: Emitter, x: ir.Value, length: ir.Value | None, axis: int, *, inverse: bool, onesided: bool
) -> ir.Value:
    """DFT-17: of the real or complex numbers in the last axis of `x`, along `axis`."""
    rank, parts, dtype = rank_of(x), static_dim(x, -1), x.dtype
    if rank is None or dtype is None or parts not in (1, 2):
        raise InexpressibleError("it is not known whether its input is real or complex")
    # The transformed axis last but one: (..., n, 1 or 2).
    order = [*(a for a in range(rank - 1) if a != axis), axis, rank - 1]
    moved = b.Transpose(x, perm=order)
    size = static_dim(x, axis)
    count = size if length is None else constant_int(length)
    if size is not None and count is not None:
        cosine, sine = (
            b.const(table.astype(dtype.numpy()), dtype)
            for table in _tables(size, count, onesided=onesided)
        )
        total = b.const(float(count), dtype)
    else:
        given = b.dim(x, axis) if length is None else length
        cosine, sine = _computed_tables(
            b, _as_scalar(b, b.dim(x, axis)), _as_scalar(b, given), dtype, onesided
        )
        total = b.cast(_as_scalar(b, given), dtype)

    last = b.ints(rank - 1)
    real = b.Slice(moved, b.ints(0), b.ints(1), last)
    out_real, out_imaginary = b.MatMul(cosine, real), b.Neg(b.MatMul(sine, real))
    if inverse:
        out_imaginary = b.Neg(out_imaginary)
    if parts == 2:
        imaginary = b.Slice(moved, b.ints(1), b.ints(2), last)
        across = b.MatMul(sine, imaginary)
        out_real = b.Sub(out_real, across) if inverse else b.Add(out_real, across)
        out_imaginary = b.Add(out_imaginary, b.MatMul(cosine, imaginary))
    out = b.Concat(out_real, out_imaginary, axis=rank - 1)
    if inverse:
        out = b.Div(out, total)
    return b.Transpose(out, perm=[order.index(a) for a in range(rank)])


def _tables(
    size: int, count: int, *, onesided: bool
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], ...]:
    """Cosines and sines of 2 pi k j / count; elements from `count` on are cut off."""
    frequencies = np.arange(count // 2 + 1 if onesided else count)
    places = np.arange(size)
    turns = np.outer(frequencies, places) % max(count, 1) / max(count, 1)
    kept = places < count
    return np.cos(2 * np.pi * turns) * kept, np.sin(2 * np.pi * turns) * kept


def _computed_tables(
    b: Emitter, size: ir.Value, count: ir.Value, dtype: ir.DataType, onesided: bool
) -> tuple[ir.Value, ir.Value]:
    zero, one, two = (_int_scalar(b, number) for number in (0, 1, 2))
    frequency_count = b.Add(b.Div(count, two), one) if onesided else count
    frequencies = b.Unsqueeze(b.Range(zero, frequency_count, one), b.ints(1))
    places = b.Range(zero, size, one)
    turns = b.Mod(b.Mul(frequencies, places), count)
    wide = ir.DataType.DOUBLE
    angles = b.Mul(b.Div(b.cast(turns, wide), b.cast(count, wide)), b.const(2 * math.pi, wide))
    kept = b.cast(b.Less(places, count), dtype)
    cosine, sine = (
        b.Mul(b.cast(function, dtype), kept) for function in (b.Cos(angles), b.Sin(angles))
    )
    return cosine, sine


def framed_fourier_transform(
    b: Emitter,
    signal: ir.Value,
    step: ir.Value,
    window: ir.Value | None,
    length: ir.Value | None,
    *,
    onesided: bool,
) -> ir.Value:
    """STFT-17: the transforms of overlapping frames of a signal (batch, n, 1 or 2)."""
    if length is None:
        if window is None:
            raise InexpressibleError("it has neither a window nor a length of its frames")
        length = b.dim(window, 0)
    known = constant_int(length)
    length, step = _as_scalar(b, length), _as_scalar(b, step)
    zero, one = _int_scalar(b, 0), _int_scalar(b, 1)
    rest = b.Sub(_as_scalar(b, b.dim(signal, 1)), length)
    starts = b.Mul(b.Range(zero, b.Add(b.Div(rest, step), one), one), step)
    places = b.Add(b.Unsqueeze(starts, b.ints(1)), b.Range(zero, length, one))
    frames = b.Gather(signal, places, axis=1)
    parts = static_dim(signal, 2)
    if parts is None or signal.dtype is None:
        raise InexpressibleError("it is not known whether its signal is real or complex")
    if frames.shape is not None and known is not None:
        frames.shape = ir.Shape([frames.shape[0], frames.shape[1], known, parts])
    if window is not None:
        frames = b.Mul(frames, b.Unsqueeze(window, b.ints(1)))
    return fourier_transform(b, frames, None, 2, inverse=False, onesided=onesided)
