"""Sums and products of integers, to the last digit and wrapping around as ATen's do.

ONNX Runtime computes ReduceSum and ReduceProd of integers in float64: wrong from 2^53 on, and
saturating where they overflow. Its MatMul, Add and Mul of integers are exact and wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import onnx_ir as ir
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import expand_to, flattened_from, sizes_of
from sardonyx.lower.kernels.loops import repeat
from sardonyx.lower.values import ONNX_TO_TORCH, Dim, Tensor, product_of

_EXACT_IN_FLOAT64 = 2**53
_LARGEST_COUNT = 2**31 - 1
"""Assumed of what is counted at run time."""
_MOVES_ELEMENTS = frozenset(
    ("Cast", "Expand", "Gather", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
)


def needs_exact_form(op: str, x: Tensor, axes: Sequence[int]) -> bool:
    """Whether integers may get too large on the way for float64, or for their own type."""
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return False
    largest = _largest_magnitude(x)
    limit = min(_EXACT_IN_FLOAT64, torch.iinfo(x.dtype).max)
    static = [x.static_dim(axis) for axis in axes]
    known = [size for size in static if size is not None]
    count = int(product_of(known)) if len(known) == len(static) else _LARGEST_COUNT
    if op == "ReduceSum":
        return largest * count > limit
    return largest > 1 and (count >= limit.bit_length() or largest**count > limit)


def _largest_magnitude(x: Tensor) -> int:
    """Of the elements, as far as the types they were cast from tell."""
    largest = _extent(x.dtype)
    value: ir.Value | None = x.value
    while value is not None and (producer := value.producer()) is not None:
        if producer.op_type not in _MOVES_ELEMENTS:
            break
        value = producer.inputs[0]
        dtype = None if value is None or value.dtype is None else ONNX_TO_TORCH.get(value.dtype)
        if dtype is None or dtype.is_floating_point or dtype.is_complex:
            break
        largest = min(largest, _extent(dtype))
    return largest


def _extent(dtype: torch.dtype) -> int:
    if dtype == torch.bool:
        return 1
    info = torch.iinfo(dtype)
    return int(max(info.max, -info.min))


def _exact_sum(b: Builder, x: Tensor, axes: Sequence[int], keepdim: bool) -> Tensor:
    """A product with a vector of ones."""
    if not axes:
        return x
    if list(axes) == [x.rank - 2] and not _may_be_empty(x, range(x.rank - 2)):
        total = b.MatMul(_ones(b, x, x.rank - 2), x)
    else:
        rows = _merged_last(b, x, axes)
        ones = _ones(b, rows, rows.rank - 1)
        if _may_be_empty(rows, range(rows.rank - 1)):  # ONNX Runtime takes no vector then
            column = b.MatMul(rows, b.unsqueeze(ones, [1]))
            total = b.squeeze(column, [column.rank - 1])
        else:
            total = b.MatMul(rows, ones)
    return b.unsqueeze(total, list(axes)) if keepdim else total


def _may_be_empty(x: Tensor, axes: Iterable[int]) -> bool:
    return not all((x.static_dim(axis) or 0) > 0 for axis in axes)


def _ones(b: Builder, x: Tensor, axis: int) -> Tensor:
    """As many as `axis` of `x` is long."""
    size = sizes_of(b, x)[axis]
    if isinstance(size, Tensor):
        return expand_to(b, b.scalar(1, x.dtype), [size])
    return b.full([size], 1, x.dtype)


def _merged_last(b: Builder, x: Tensor, axes: Sequence[int]) -> Tensor:
    """The axes as one, behind all others."""
    kept = [axis for axis in range(x.rank) if axis not in axes]
    moved = b.transpose(x, [*kept, *axes])
    return moved if len(axes) == 1 else flattened_from(b, moved, len(kept))


def _exact_product(b: Builder, x: Tensor, axes: Sequence[int], keepdim: bool) -> Tensor:
    if not axes:
        return x
    rows = _merged_last(b, x, axes)
    size = sizes_of(b, rows)[-1]
    if isinstance(size, int) and size > 0:
        product = combined_by_halves(b, "Mul", rows, rows.rank - 1, size)
    else:
        product = _multiplied_in_turn(b, rows, size)
    product = b.squeeze(product, [product.rank - 1])
    return b.unsqueeze(product, list(axes)) if keepdim else product


def combined_by_halves(b: Builder, op: str, x: Tensor, axis: int, size: int) -> Tensor:
    """The one half of an axis combined with the other, until it is one element long."""
    while size > 1:
        half = size // 2
        halves = b.slice(x, axis, 0, half), b.slice(x, axis, half, 2 * half)
        combined = b.op(op, *halves)
        if size % 2:
            combined = b.Concat(combined, b.slice(x, axis, size - 1, size), axis=axis)
        x, size = combined, size - half
    return x


def _multiplied_in_turn(b: Builder, x: Tensor, size: Dim | Tensor) -> Tensor:
    axis = x.rank - 1
    start = expand_to(b, b.scalar(1, x.dtype), [*sizes_of(b, x)[:-1], 1])

    def step(number: Tensor, carried: list[Tensor]) -> list[Tensor]:
        return [b.Mul(carried[0], b.Gather(x, number, axis=axis))]

    return repeat(b, size, [start], step)[0]


EXACT_FORMS: Mapping[str, Callable[[Builder, Tensor, Sequence[int], bool], Tensor]] = {
    "ReduceProd": _exact_product,
    "ReduceSum": _exact_sum,
}
