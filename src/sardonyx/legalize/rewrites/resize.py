"""Resize by gathering neighbours along one axis after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError, known_dtype, known_rank
from sardonyx.legalize.emitter import Emitter, constant_of, rank_of, same_dim, static_dim
from sardonyx.legalize.rewrites.index_arithmetic import clamped, positions

_FLOAT = ir.DataType.FLOAT


@dataclass(frozen=True)
class Sampling:
    """How a Resize reads its input."""

    mode: str = "nearest"
    coordinates: str = "asymmetric"
    nearest_mode: str = "floor"


@dataclass(frozen=True)
class _Axis:
    """One axis that changes its size: 1-D tensors of one element."""

    number: int
    size: ir.Value
    count: ir.Value
    scale: ir.Value


def resize_by_gathering(
    b: Emitter,
    x: ir.Value,
    scales: ir.Value | None,
    sizes: ir.Value | None,
    out: ir.Value,
    sampling: Sampling,
) -> ir.Value:
    """`sizes`, or else `scales`, have an element for each axis; `out` is what the node gives."""
    rank = known_rank(x)
    if sampling.mode not in ("nearest", "linear"):
        raise InexpressibleError(f"its mode {sampling.mode} came with opset 11")
    if sampling.mode != "nearest" and not known_dtype(x).is_floating_point():
        raise InexpressibleError("it interpolates between integers")
    result = x
    for axis in _changing_axes(b, x, scales, sizes, out, rank):
        result = _resized(b, result, axis, sampling, rank)
    return result


def _changing_axes(
    b: Emitter,
    x: ir.Value,
    scales: ir.Value | None,
    sizes: ir.Value | None,
    out: ir.Value,
    rank: int,
) -> Sequence[_Axis]:
    axes = []
    factors, targets = constant_of(scales), constant_of(sizes)
    for number in range(rank):
        before, after = static_dim(x, number), static_dim(out, number)
        if factors is not None and factors[number] == 1:
            continue
        if sizes is not None and rank_of(out) == rank and same_dim(x, number, out, number):
            continue
        if sizes is not None and before is not None:
            target = after if targets is None else int(targets[number])
            if before == target:
                continue
        size, index = b.dim(x, number), b.ints(number)
        wide_size = b.cast(size, _FLOAT)
        if sizes is not None:
            count = b.Gather(b.cast(sizes, ir.DataType.INT64), index, axis=0)
            scale = b.Div(b.cast(count, _FLOAT), wide_size)
        elif scales is not None:
            scale = b.Gather(scales, index, axis=0)
            count = b.cast(b.Floor(b.Mul(wide_size, scale)), ir.DataType.INT64)
        else:
            raise InexpressibleError("it has neither scales nor sizes")
        if after is not None:
            count = b.ints(after)
        axes.append(_Axis(number, size, count, scale))
    return axes


def _resized(b: Emitter, x: ir.Value, axis: _Axis, sampling: Sampling, rank: int) -> ir.Value:
    place = _coordinates(b, axis, sampling.coordinates)
    last = b.Sub(axis.size, b.ints(1))

    def elements_at(index: ir.Value) -> ir.Value:
        inside = clamped(b, b.cast(index, ir.DataType.INT64), b.ints(0), last)
        return b.Gather(x, inside, axis=axis.number)

    if sampling.mode == "nearest":
        return elements_at(_rounded(b, place, sampling.nearest_mode))
    base = b.Floor(place)
    rest = b.Sub(place, base)
    one = b.const(1.0, _FLOAT)

    def weighted(index: ir.Value, weight: ir.Value) -> ir.Value:
        factor = b.Reshape(b.cast(weight, x.dtype), b.ints(-1, *[1] * (rank - 1 - axis.number)))
        return b.Mul(elements_at(index), factor)

    return b.Add(weighted(base, b.Sub(one, rest)), weighted(b.Add(base, one), rest))


def _coordinates(b: Emitter, axis: _Axis, mode: str) -> ir.Value:
    """Where in the input each element of the result lies."""
    place = b.cast(positions(b, axis.count), _FLOAT)
    half = b.const(0.5, _FLOAT)
    if mode == "asymmetric":
        return b.Div(place, axis.scale)
    if mode in ("half_pixel", "pytorch_half_pixel"):
        middle = b.Sub(b.Div(b.Add(place, half), axis.scale), half)
        if mode == "half_pixel":
            return middle
        several = b.Less(b.ints(1), axis.count)
        return b.Where(several, middle, b.const(0.0, _FLOAT))
    if mode == "align_corners":
        one = b.const(1.0, _FLOAT)
        gaps = b.Max(b.Sub(b.cast(axis.count, _FLOAT), one), one)
        return b.Div(b.Mul(place, b.Sub(b.cast(axis.size, _FLOAT), one)), gaps)
    raise InexpressibleError(f"its coordinates {mode} came later")


def _rounded(b: Emitter, place: ir.Value, mode: str) -> ir.Value:
    half = b.const(0.5, _FLOAT)
    if mode == "floor":
        return b.Floor(place)
    if mode == "ceil":
        return b.Ceil(place)
    if mode == "round_prefer_ceil":
        return b.Floor(b.Add(place, half))
    return b.Ceil(b.Sub(place, half))


def constant_scales(
    x: ir.Value, scales: ir.Value | None, sizes: ir.Value | None, out: ir.Value
) -> np.ndarray[tuple[int], np.dtype[np.float32]] | None:
    """The factor of each axis, where all are known and sizes are whole multiples."""
    if sizes is None:
        known = constant_of(scales)
        return None if known is None else known.astype(np.float32)
    rank = rank_of(x)
    if rank is None or rank != rank_of(out):
        return None
    factors = []
    for axis in range(rank):
        before, after = static_dim(x, axis), static_dim(out, axis)
        if not before or after is None or after % before:
            return None
        factors.append(after // before)
    return np.array(factors, dtype=np.float32)
