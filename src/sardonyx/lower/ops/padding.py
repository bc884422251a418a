"""Padding, by a constant and by what is there."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from sardonyx.lower.builder import Builder
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Dims, Scalar, Tensor

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _over(name: str) -> list[str]:
    return [f"aten::{name}{spatial}d" for spatial in (1, 2, 3)]


@lowering("aten::pad", "aten::constant_pad_nd")
@lowering("aten::_pad_circular", mode="circular")
@lowering(*_over("reflection_pad"), renamed={"padding": "pad"}, mode="reflect")
@lowering(*_over("replication_pad"), renamed={"padding": "pad"}, mode="replicate")
def pad(
    b: Builder,
    self: Tensor,
    pad: Dims,
    mode: str = "constant",
    value: Scalar | Tensor | None = None,
) -> Tensor:
    """`pad` as ATen has it: (start, end) of the last axis first."""
    x = self
    starts: list[Dim] = [0] * x.rank
    ends: list[Dim] = [0] * x.rank
    for index in range(len(pad) // 2):
        starts[x.rank - 1 - index] = pad[2 * index]
        ends[x.rank - 1 - index] = pad[2 * index + 1]
    if all(isinstance(amount, int) and amount == 0 for amount in (*starts, *ends)):
        return x
    if mode == "constant":
        filler = b.scalar(0 if value is None else value, x.dtype)
        return b.Pad(x, b.shape([*starts, *ends]), filler)
    grown = [_at_least_zero(amount) for amount in (*starts, *ends)]
    grows = any(not isinstance(amount, int) or amount for amount in grown)
    # ATen mirrors what it will crop, but wraps around to what is left.
    if mode == "circular":
        cropped = _crop(b, x, x, starts, ends, padded=False)
        if not grows:
            return cropped
        if x.static_shape is not None and 0 not in x.static_shape:
            return b.Pad(cropped, b.shape(grown), mode=_MODES[mode])
        return _wrap(b, cropped, x, starts, ends)
    result = b.Pad(x, b.shape(grown), mode=_MODES[mode]) if grows else x
    return _crop(b, x, result, starts, ends, padded=True)


def _wrap(
    b: Builder, cropped: Tensor, x: Tensor, starts: Sequence[Dim], ends: Sequence[Dim]
) -> Tensor:
    """Pad's wrap, for `x` cropped that may be empty: ONNX Runtime has none of such tensors."""
    result = cropped
    for axis, (start, end) in enumerate(zip(starts, ends, strict=True)):
        before, after = _at_least_zero(start), _at_least_zero(end)
        size = x.dim(axis) + _at_most_zero(start) + _at_most_zero(end)
        parts = [result]
        if before != 0:
            parts.insert(0, b.slice(result, axis, size - before, None))
        if after != 0:
            parts.append(b.slice(result, axis, 0, after))
        if len(parts) > 1:
            result = b.Concat(*parts, axis=axis)
    return result


def _crop(
    b: Builder,
    x: Tensor,
    result: Tensor,
    starts: Sequence[Dim],
    ends: Sequence[Dim],
    padded: bool,
) -> Tensor:
    """Removes what negative amounts say, from `x` itself or from what padding made of it."""
    for axis, (start, end) in enumerate(zip(starts, ends, strict=True)):
        first, removed = -_at_most_zero(start), _at_most_zero(end)
        if first == 0 and removed == 0:
            continue
        size = x.dim(axis)
        if padded:
            size = size + _at_least_zero(start) + _at_least_zero(end)
        result = b.slice(result, axis, first, size + removed)
    return result


def _at_least_zero(amount: Dim) -> Dim:
    if isinstance(amount, int):
        return max(amount, 0)
    return amount if amount.is_nonnegative else sympy.Max(amount, 0)


def _at_most_zero(amount: Dim) -> Dim:
    if isinstance(amount, int):
        return min(amount, 0)
    return 0 if amount.is_nonnegative else sympy.Min(amount, 0)
