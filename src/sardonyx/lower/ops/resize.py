"""Resampling of images: interpolation to another size.

ONNX Resize does it where it can be shown to read the elements ATen reads; where sizes or factors
would make the two round differently, the positions are computed in the graph as ATen does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import sympy
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Dims, Tensor


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis to resample: from `size` elements to `count`."""

    number: int
    size: Dim
    count: Dim
    scale: float | None
    """The factor the model gave; coordinates follow it even where count / size is another."""

    @property
    def static(self) -> tuple[int, int] | None:
        if isinstance(self.size, int) and isinstance(self.count, int):
            return self.size, self.count
        return None

    @property
    def follows_sizes(self) -> bool:
        """Whether count / size is the factor."""
        if self.scale is None:
            return True
        if self.scale.is_integer():
            return bool(self.count == self.size * int(self.scale))
        return self.static is not None and self.size * self.scale == self.count

    @property
    def follows_scale(self) -> bool:
        """Whether Resize, given the factor in float32, finds `count` and the same factor."""
        if self.scale is None:
            return False
        if self.static is not None:
            single = torch.tensor(self.scale, dtype=torch.float32)
            return int((single * self.static[0]).floor()) == self.static[1]
        return _is_exact_factor(self.scale)


def _is_exact_factor(scale: float) -> bool:
    """Few enough digits for size * scale to be exact in float32 at any size met."""
    return (scale * 8).is_integer() and scale < 64


_LARGEST_CHECKED = 1 << 16
"""How many positions of an axis of unknown size are compared between ATen and ONNX."""


Along: TypeAlias = Callable[[Builder, Tensor, _Axis, bool], Tensor]
Resample: TypeAlias = Callable[..., torch.Tensor]


@dataclass(frozen=True, slots=True)
class _Mode:
    """An interpolation: what Resize calls it, and how ATen computes it along one axis."""

    name: str
    along: Along
    half_pixel: bool = True
    antialias: bool = False
    cubic_coeff_a: float | None = None
    resample: Resample | None = None
    """ATen's operator for images, whose weights of uint8 are rounded."""

    @property
    def is_nearest(self) -> bool:
        return self.name == "nearest"


# -- positions as ATen computes them -----------------------------------------------------------


def _ratio(b: Builder, axis: _Axis, align_corners: bool, dtype: torch.dtype) -> Tensor:
    """How many elements of the input one step in the output is."""
    if axis.scale is not None and not align_corners:
        return b.scalar(1 / axis.scale, dtype)
    if axis.static is not None:
        size, count = axis.static
        steps = (size - 1, max(count - 1, 1)) if align_corners else (size, count)
        return b.const(torch.tensor(steps[0], dtype=dtype) / torch.tensor(steps[1], dtype=dtype))
    size_now, count_now = b.size(axis.size), b.size(axis.count)
    if align_corners:
        size_now, count_now = b.Sub(size_now, 1), b.Max(b.Sub(count_now, 1), b.const([1]))
    return b.Div(b.cast(size_now, dtype), b.cast(count_now, dtype))


def _source(b: Builder, axis: _Axis, align_corners: bool, dtype: torch.dtype) -> Tensor:
    """Where in the input, as a real number, each element of the output lies."""
    steps = b.cast(arange(b, axis.count), dtype)
    ratio = _ratio(b, axis, align_corners, dtype)
    if align_corners:
        result = b.Mul(steps, ratio)
    else:
        result = b.Sub(b.Mul(b.Add(steps, 0.5), ratio), 0.5)
    return result


def _coordinate_dtype(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _last(b: Builder, axis: _Axis) -> Tensor:
    return b.Sub(b.size(axis.size), 1)


def _nearest_along(shift: float, b: Builder, x: Tensor, axis: _Axis, align_corners: bool) -> Tensor:
    if axis.static is not None:
        chosen = b.const(_nearest_in_aten(*axis.static, axis.scale, shift))
    else:
        steps = b.cast(arange(b, axis.count), torch.float32)
        moved = steps if shift == 0 else b.Add(steps, shift)
        position = b.Floor(b.Mul(moved, _ratio(b, axis, False, torch.float32)))
        chosen = b.Min(b.cast(position, torch.int64), _last(b, axis))
    return b.Gather(x, chosen, axis=axis.number)


def _nearest_in_aten(size: int, count: int, scale: float | None, shift: float) -> torch.Tensor:
    if size == count:
        return torch.arange(count)
    single = torch.float32
    if scale is not None:
        ratio = torch.tensor(1 / scale, dtype=single)
    else:
        ratio = torch.tensor(size, dtype=single) / torch.tensor(count, dtype=single)
    steps = torch.arange(count, dtype=single) + shift
    return (steps * ratio).floor().long().clamp(max=size - 1)


def _nearest_in_onnx(size: int, count: int, scale: float | None, shift: float) -> torch.Tensor:
    """What Resize reads, in asymmetric (shift 0) or half_pixel (shift 0.5) coordinates."""
    single = torch.float32
    factor = torch.tensor(count / size if scale is None else scale, dtype=single)
    source = (torch.arange(count, dtype=single) + shift) / factor - shift
    rounded = source.floor() if shift == 0 else (source + 0.5).floor()
    return rounded.long().clamp(0, size - 1)


def _linear_along(b: Builder, x: Tensor, axis: _Axis, align_corners: bool) -> Tensor:
    dtype = _coordinate_dtype(x)
    source = b.Max(_source(b, axis, align_corners, dtype), b.scalar(0, dtype))
    low = b.Min(b.cast(b.Floor(source), torch.int64), _last(b, axis))
    weight = _weight_between(b, source, low, dtype)
    high = b.Min(b.Add(low, 1), _last(b, axis))
    weights = [b.Sub(b.scalar(1, dtype), weight), weight]
    return _weighted(b, x, axis, [low, high], weights)


def _weight_between(b: Builder, source: Tensor, low: Tensor, dtype: torch.dtype) -> Tensor:
    return b.Clip(b.Sub(source, b.cast(low, dtype)), 0, 1)


def _cubic_along(b: Builder, x: Tensor, axis: _Axis, align_corners: bool) -> Tensor:
    dtype = _coordinate_dtype(x)
    source = _source(b, axis, align_corners, dtype)
    low = b.Min(b.cast(b.Floor(source), torch.int64), _last(b, axis))
    near = _weight_between(b, source, low, dtype)
    far = b.Sub(b.scalar(1, dtype), near)
    taps = [b.Clip(b.Add(low, step), 0, b.squeeze(_last(b, axis), [0])) for step in (-1, 0, 1, 2)]
    weights = [
        _outer_cubic(b, near),
        _inner_cubic(b, near),
        _inner_cubic(b, far),
        _outer_cubic(b, far),
    ]
    return _weighted(b, x, axis, taps, weights)


_CUBIC = -0.75


def _inner_cubic(b: Builder, t: Tensor) -> Tensor:
    """Keys' kernel within a distance of 1."""
    return b.Add(b.Mul(b.Mul(b.Sub(b.Mul(t, _CUBIC + 2), _CUBIC + 3), t), t), 1)


def _outer_cubic(b: Builder, t: Tensor) -> Tensor:
    """Keys' kernel at a distance of 1 + t."""
    d = b.Add(t, 1)
    inner = b.Add(b.Mul(b.Sub(b.Mul(d, _CUBIC), 5 * _CUBIC), d), 8 * _CUBIC)
    return b.Sub(b.Mul(inner, d), 4 * _CUBIC)


def _weighted(
    b: Builder, x: Tensor, axis: _Axis, taps: Sequence[Tensor], weights: Sequence[Tensor]
) -> Tensor:
    """The sum of weight * x[tap], both along `axis`."""
    trailing = list(range(1, x.rank - axis.number))
    total: Tensor | None = None
    for tap, weight in zip(taps, weights, strict=True):
        shaped = b.unsqueeze(b.cast(weight, x.dtype), trailing)
        part = b.Mul(b.Gather(x, tap, axis=axis.number), shaped)
        total = part if total is None else b.Add(total, part)
    assert total is not None
    return total


def _matrix(
    b: Builder, resample: Resample, axis: _Axis, align_corners: bool, kind: str
) -> torch.Tensor:
    """(count, size): resampling is linear, so it is what ATen makes of an identity matrix."""
    if axis.static is None:
        raise b.refuse(f"{kind} needs sizes known at export time")
    size, count = axis.static
    identity = torch.eye(size, dtype=torch.float64)[None, None]
    return resample(identity, [count, size], align_corners, axis.scale, None)[0, 0]


def _multiplied_along(b: Builder, x: Tensor, axis: _Axis, matrix: torch.Tensor) -> Tensor:
    last = x.rank - 1
    perm = [*(a for a in range(x.rank) if a != axis.number), axis.number]
    moved = b.MatMul(b.transpose(x, perm), b.const(matrix.T.contiguous(), x.dtype))
    return b.transpose(moved, [*range(axis.number), last, *range(axis.number, last)])


def _antialiased_along(
    resample: Resample, b: Builder, x: Tensor, axis: _Axis, align_corners: bool
) -> Tensor:
    matrix = _matrix(b, resample, axis, align_corners, "antialiasing by this factor")
    return _multiplied_along(b, x, axis, matrix)


def _bytes_along(
    resample: Resample, b: Builder, x: Tensor, axis: _Axis, align_corners: bool
) -> Tensor:
    """ATen's weights of bytes are integers of 16 bits, scaled by a power of two."""
    matrix = _matrix(b, resample, axis, align_corners, "interpolation of uint8")
    largest = float(matrix.max())
    bits = next((n for n in range(22) if int(0.5 + largest * 2 ** (n + 1)) >= 1 << 15), 22)
    weights = (matrix * 2**bits + matrix.sign() * 0.5).trunc()
    total = _multiplied_along(b, b.cast(x, torch.int32), axis, weights)
    rounded = b.Div(b.Max(b.Add(total, 1 << (bits - 1)), 0), 1 << bits)
    return b.cast(b.Min(rounded, 255), torch.uint8)


_aten = torch.ops.aten
_NEAREST = _Mode("nearest", partial(_nearest_along, 0.0), half_pixel=False)
_NEAREST_EXACT = _Mode("nearest", partial(_nearest_along, 0.5))
_LINEAR = _Mode("linear", _linear_along, resample=_aten.upsample_bilinear2d.default)
_CUBIC_MODE = _Mode(
    "cubic", _cubic_along, cubic_coeff_a=_CUBIC, resample=_aten.upsample_bicubic2d.default
)
_LINEAR_ANTIALIASED = _Mode(
    "linear",
    partial(_antialiased_along, _aten._upsample_bilinear2d_aa.default),
    antialias=True,
    resample=_aten._upsample_bilinear2d_aa.default,
)
_CUBIC_ANTIALIASED = _Mode(
    "cubic",
    partial(_antialiased_along, _aten._upsample_bicubic2d_aa.default),
    antialias=True,
    cubic_coeff_a=-0.5,
    resample=_aten._upsample_bicubic2d_aa.default,
)


# -- one Resize, or axis by axis ---------------------------------------------------------------


def _resize(
    b: Builder,
    x: Tensor,
    mode: _Mode,
    output_size: Sequence[Dim],
    scales: Sequence[float | None],
    align_corners: bool = False,
) -> Tensor:
    first = x.rank - len(output_size)
    axes = [
        _Axis(first + i, x.dim(first + i), count, scale)
        for i, (count, scale) in enumerate(zip(output_size, scales, strict=True))
    ]
    axes = [axis for axis in axes if not _stays(axis, mode, align_corners)]
    if not axes:
        return x
    if x.dtype == torch.uint8 and mode.resample is not None:
        # Rounded to bytes in between, so their order matters.
        along = partial(_bytes_along, mode.resample)
        return _axis_by_axis(b, x, along, axes[::-1], align_corners)
    by_scale = all(axis.follows_scale and _reads_alike(axis, mode, axis.scale) for axis in axes)
    by_size = all(
        (align_corners or axis.follows_sizes) and _reads_alike(axis, mode, None) for axis in axes
    )
    # With aligned corners ONNX places the filters of antialiasing elsewhere than ATen.
    fits = x.dtype != torch.float64 and not (mode.antialias and align_corners)
    if fits and (by_scale or by_size):
        return _resize_node(b, x, mode, axes, by_scale, align_corners)
    return _axis_by_axis(b, x, mode.along, axes, align_corners)


def _axis_by_axis(
    b: Builder, x: Tensor, along: Along, axes: Sequence[_Axis], align_corners: bool
) -> Tensor:
    for axis in axes:
        x = along(b, x, axis, align_corners)
        x = b.with_shape(x, [axis.count if a == axis.number else None for a in range(x.rank)])
    return x


def _stays(axis: _Axis, mode: _Mode, align_corners: bool) -> bool:
    """Whether the axis is left as it is."""
    follows = mode.is_nearest or align_corners or axis.scale in (None, 1.0)
    return bool(axis.size == axis.count) and follows


def _reads_alike(axis: _Axis, mode: _Mode, scale: float | None) -> bool:
    """Whether nearest neighbours are the same in ATen and ONNX; other modes are continuous."""
    if not mode.is_nearest:
        return True
    shift = 0.5 if mode.half_pixel else 0.0
    if axis.static is not None:
        size, count = axis.static
    elif scale is not None:
        size, count = math.ceil(_LARGEST_CHECKED / scale), _LARGEST_CHECKED
    else:
        return False
    wanted = _nearest_in_aten(size, count, axis.scale, shift)
    return bool(torch.equal(wanted, _nearest_in_onnx(size, count, scale, shift)))


def _resize_node(
    b: Builder, x: Tensor, mode: _Mode, axes: Sequence[_Axis], by_scale: bool, align_corners: bool
) -> Tensor:
    rounding = None
    if mode.is_nearest and mode.half_pixel:
        coordinates, rounding = "half_pixel", "round_prefer_ceil"
    elif mode.is_nearest:
        coordinates, rounding = "asymmetric", "floor"
    else:
        coordinates = "align_corners" if align_corners else "half_pixel"
    scales = b.const([axis.scale for axis in axes], torch.float32) if by_scale else None
    sizes = None if by_scale else b.shape([axis.count for axis in axes])
    resized = b.Resize(
        x,
        None,
        scales,
        sizes,
        axes=[axis.number for axis in axes],
        mode=mode.name,
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
        cubic_coeff_a=mode.cubic_coeff_a,
        antialias=1 if mode.antialias else None,
        exclude_outside=1 if mode.antialias else None,
    )
    counts = {axis.number: axis.count for axis in axes}
    return b.with_shape(resized, [counts.get(a, x.dim(a)) for a in range(x.rank)])


def _sizes_and_scales(
    b: Builder, x: Tensor, output_size: Sequence[Dim] | None, scale_factors: Sequence[float] | None
) -> tuple[list[Dim], list[float | None]]:
    """For the `.vec` overloads, of which one or the other is given."""
    if output_size is not None:
        return list(output_size), [None] * len(output_size)
    if scale_factors is None:
        raise b.refuse("neither output_size nor scale_factors is given")
    spatial = len(scale_factors)
    sizes = b.dims(x)[x.rank - spatial :]
    counts = [_scaled(size, scale) for size, scale in zip(sizes, scale_factors, strict=True)]
    return counts, list(scale_factors)


def _scaled(size: Dim, scale: float) -> Dim:
    if isinstance(size, int):
        return int(size * scale)
    if scale.is_integer():
        return size * int(scale)
    return sympy.floor(size * sympy.Float(scale))


def interpolate_vec(
    b: Builder,
    input: Tensor,
    output_size: Dims | None,
    align_corners: bool = False,
    scale_factors: list[float] | None = None,
    *,
    mode: _Mode,
) -> Tensor:
    sizes, scales = _sizes_and_scales(b, input, output_size, scale_factors)
    return _resize(b, input, mode, sizes, scales, align_corners)


def interpolate(
    b: Builder,
    self: Tensor,
    output_size: Dims,
    align_corners: bool = False,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
    *,
    mode: _Mode,
) -> Tensor:
    given = [scales] if len(output_size) == 1 else [scales_d, scales_h, scales_w]
    return _resize(b, self, mode, output_size, given[-len(output_size) :], align_corners)


for _name, _mode in {
    **{f"upsample_nearest{spatial}d": _NEAREST for spatial in (1, 2, 3)},
    **{f"_upsample_nearest_exact{spatial}d": _NEAREST_EXACT for spatial in (1, 2, 3)},
    "upsample_linear1d": _LINEAR,
    "upsample_bilinear2d": _LINEAR,
    "upsample_trilinear3d": _LINEAR,
    "upsample_bicubic2d": _CUBIC_MODE,
    "_upsample_bilinear2d_aa": _LINEAR_ANTIALIASED,
    "_upsample_bicubic2d_aa": _CUBIC_ANTIALIASED,
}.items():
    lowering(f"aten::{_name}.vec", mode=_mode)(interpolate_vec)
    lowering(f"aten::{_name}", mode=_mode)(interpolate)
