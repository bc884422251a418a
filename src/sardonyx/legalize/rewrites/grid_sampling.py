"""GridSample by gathering the elements around each point and weighting them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from sardonyx.legalize.boundary import InexpressibleError, known_dtype, known_rank
from sardonyx.legalize.emitter import Emitter, required_input

_CUBIC_A = -0.75


@dataclass(frozen=True)
class _Axis:
    """A spatial axis: its size as a 0-d integer and as a number of the grid's type."""

    size: ir.Value
    length: ir.Value


@dataclass(frozen=True)
class _Tap:
    """One neighbour along an axis: where it is, and its weight (None is 1)."""

    place: ir.Value
    weight: ir.Value | None


class _Sampler:
    def __init__(self, b: Emitter, node: ir.Node) -> None:
        self.b = b
        self.x, self.grid = required_input(node, 0), required_input(node, 1)
        mode = node.attributes.get_string("mode", "linear")
        self.mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
        self.padding = node.attributes.get_string("padding_mode", "zeros")
        self.align_corners = bool(node.attributes.get_int("align_corners", 0))
        self.rank = known_rank(self.x)
        self.dtype = known_dtype(self.grid)

    def number(self, value: float) -> ir.Value:
        return self.b.const(value, self.dtype)

    def sampled(self) -> ir.Value:
        b, spatial = self.b, self.rank - 2
        axes = [self._axis(2 + axis) for axis in range(spatial)]
        # The last axis of the grid goes x, y, z and the axes of the image z, y, x.
        coordinates = [
            b.Gather(self.grid, b.const(spatial - 1 - axis, ir.DataType.INT64), axis=self.rank - 1)
            for axis in range(spatial)
        ]
        taps = [
            self._taps(self._unnormalized(coordinate, axis), axis)
            for coordinate, axis in zip(coordinates, axes, strict=True)
        ]
        # (batch * elements, channels), so that one index finds all channels of an element.
        channels_last = b.Transpose(self.x, perm=[0, *range(2, self.rank), 1])
        flat = b.Reshape(channels_last, b.Concat(b.ints(-1), b.dim(self.x, 1), axis=0))
        first = self._first_of_each_image(axes)
        combinations = itertools.product(*taps)
        parts = (self._weighted(flat, first, combination, axes) for combination in combinations)
        total = functools.reduce(b.Add, parts)
        return b.Transpose(total, perm=[0, self.rank - 1, *range(1, self.rank - 1)])

    def _axis(self, axis: int) -> _Axis:
        b = self.b
        size = b.Squeeze(b.dim(self.x, axis), b.ints(0))
        return _Axis(size, b.cast(size, self.dtype))

    def _first_of_each_image(self, axes: Sequence[_Axis]) -> ir.Value:
        b = self.b
        zero, one = b.const(0, ir.DataType.INT64), b.const(1, ir.DataType.INT64)
        images = b.Range(zero, b.Squeeze(b.dim(self.x, 0), b.ints(0)), one)
        for axis in axes:
            images = b.Mul(images, axis.size)
        return b.Reshape(images, b.ints(-1, *[1] * (self.rank - 2)))

    def _unnormalized(self, coordinate: ir.Value, axis: _Axis) -> ir.Value:
        b, half, one = self.b, self.number(0.5), self.number(1.0)
        shifted = b.Add(coordinate, one)
        if self.align_corners:
            return b.Mul(shifted, b.Mul(b.Sub(axis.length, one), half))
        return b.Mul(b.Sub(b.Mul(shifted, axis.length), one), half)

    def _taps(self, coordinate: ir.Value, axis: _Axis) -> list[_Tap]:
        b = self.b
        if self.mode == "cubic":
            base = b.Floor(coordinate)
            weights = _cubic_weights(b, b.Sub(coordinate, base), _CUBIC_A)
            offsets = [b.Add(base, self.number(offset)) for offset in (-1.0, 0.0, 1.0, 2.0)]
            places = [self._padded(place, axis) for place in offsets]
            return [_Tap(place, weight) for place, weight in zip(places, weights, strict=True)]
        coordinate = self._padded(coordinate, axis)
        if self.mode == "nearest":
            return [_Tap(b.Round(coordinate), None)]
        if self.mode != "linear":
            raise InexpressibleError(f"its mode {self.mode} is not known")
        low = b.Floor(coordinate)
        above = b.Sub(coordinate, low)
        one = self.number(1.0)
        return [_Tap(low, b.Sub(one, above)), _Tap(b.Add(low, one), above)]

    def _padded(self, place: ir.Value, axis: _Axis) -> ir.Value:
        b, one, zero = self.b, self.number(1.0), self.number(0.0)
        if self.padding == "zeros":
            return place
        last = b.Sub(axis.length, one)
        if self.padding == "reflection":
            place = self._reflected(place, axis, last)
        elif self.padding != "border":
            raise InexpressibleError(f"its padding mode {self.padding} is not known")
        return b.Min(b.Max(place, zero), last)

    def _reflected(self, place: ir.Value, axis: _Axis, last: ir.Value) -> ir.Value:
        """Mirrored at the middle of the outer elements, or at their outer edges."""
        b, two = self.b, self.number(2.0)
        low = self.number(0.0 if self.align_corners else -0.5)
        # An image of one element has no span with aligned corners; it is all there is.
        span = b.Max(last, self.number(1e-6)) if self.align_corners else axis.length
        distance = b.Abs(b.Sub(place, low))
        flips = b.Floor(b.Div(distance, span))
        rest = b.Sub(distance, b.Mul(flips, span))
        is_odd = b.Greater(b.Sub(flips, b.Mul(b.Floor(b.Div(flips, two)), two)), self.number(0.5))
        return b.Add(b.Where(is_odd, b.Sub(span, rest), rest), low)

    def _weighted(
        self,
        flat: ir.Value,
        first: ir.Value,
        taps: Sequence[_Tap],
        axes: Sequence[_Axis],
    ) -> ir.Value:
        b = self.b
        zero, one = b.const(0, ir.DataType.INT64), b.const(1, ir.DataType.INT64)
        index: ir.Value | None = None
        weight: ir.Value | None = None
        inside: ir.Value | None = None
        for tap, axis in zip(taps, axes, strict=True):
            last = b.Sub(axis.size, one)
            place = b.Min(b.Max(b.cast(tap.place, ir.DataType.INT64), zero), last)
            index = place if index is None else b.Add(b.Mul(index, axis.size), place)
            if tap.weight is not None:
                weight = tap.weight if weight is None else b.Mul(weight, tap.weight)
            if self.padding == "zeros":
                edge = b.And(
                    b.Greater(tap.place, self.number(-1.0)), b.Less(tap.place, axis.length)
                )
                inside = edge if inside is None else b.And(inside, edge)
        assert index is not None
        found = b.Gather(flat, b.Add(index, first), axis=0)
        channel = b.ints(self.rank - 1)
        if weight is not None:
            found = b.Mul(found, b.cast(b.Unsqueeze(weight, channel), self.x.dtype))
        if inside is not None:
            nothing = b.const(0, self.x.dtype or ir.DataType.FLOAT)
            found = b.Where(b.Unsqueeze(inside, channel), found, nothing)
        return found


def sample_by_gathering(b: Emitter, node: ir.Node) -> ir.Value:
    """What the node computes, of images with any number of spatial axes."""
    return _Sampler(b, node).sampled()


def _cubic_weights(b: Emitter, t: ir.Value, a: float) -> list[ir.Value]:
    """Of the four elements around a place `t` after the second of them."""

    def polynomial(x: ir.Value, *coefficients: float) -> ir.Value:
        result = b.const_like(coefficients[0], like=t)
        for coefficient in coefficients[1:]:
            result = b.Add(b.Mul(result, x), b.const_like(coefficient, like=t))
        return result

    def near(x: ir.Value) -> ir.Value:
        return polynomial(x, a + 2, -(a + 3), 0.0, 1.0)

    def far(x: ir.Value) -> ir.Value:
        return polynomial(x, a, -5 * a, 8 * a, -4 * a)

    one, two = b.const_like(1.0, like=t), b.const_like(2.0, like=t)
    return [far(b.Add(t, one)), near(t), near(b.Sub(one, t)), far(b.Sub(two, t))]
