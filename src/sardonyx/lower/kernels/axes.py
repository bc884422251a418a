"""Axes, index ranges and slice bounds: what operators that move elements have in common."""

from __future__ import annotations

from collections.abc import Sequence

import sympy
import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.values import Dim, Tensor, plain, product_of

_LARGEST_CONSTANT = 1024
"""Index lists up to this length are written out; longer ones are a Range."""


def axis_of(x: Tensor, dim: int) -> int:
    """`dim` counted from the front. A 0-d tensor counts as having one dim, as in ATen."""
    return dim % max(x.rank, 1)


def at_least_1d(b: Builder, x: Tensor) -> Tensor:
    return b.reshape(x, [1]) if x.rank == 0 else x


def is_number(size: Dim | Tensor | None, number: int) -> bool:
    return isinstance(size, int) and size == number


def sizes_of(b: Builder, x: Tensor) -> list[Dim | Tensor]:
    """The sizes of `x`, read at run time where nothing is known of them."""
    return [
        b.Shape(x, start=axis, end=axis + 1) if size is None else size
        for axis, size in enumerate(x.shape or ())
    ]


def expand_to(b: Builder, x: Tensor, dims: Sequence[Dim | Tensor]) -> Tensor:
    """Broadcast to sizes of which some may only be known at run time."""
    known = [d for d in dims if not isinstance(d, Tensor)]
    if len(known) == len(dims):
        return b.expand(x, known)
    result = b.Expand(x, b.shape(dims))
    return b.with_shape(result, [None if isinstance(d, Tensor) else d for d in dims])


def reshape_to(b: Builder, x: Tensor, dims: Sequence[Dim | Tensor]) -> Tensor:
    """Reshape to sizes of which some may only be known at run time."""
    known = [d for d in dims if not isinstance(d, Tensor)]
    if len(known) == len(dims):
        return b.reshape(x, known)
    result = b.Reshape(x, b.shape(dims), allowzero=1 if 0 in known else None)
    return b.with_shape(result, [None if isinstance(d, Tensor) or d == -1 else d for d in dims])


def alike(b: Builder, *tensors: Tensor) -> list[Tensor]:
    """All tensors expanded to their common shape."""
    shape = b.broadcast_shape(*tensors)
    if shape is not None and None not in shape:
        dims = [d for d in shape if d is not None]
        return [b.expand(x, dims) for x in tensors]
    total, *others = (b.cast(x, torch.int32) if x.dtype == torch.bool else x for x in tensors)
    for other in others:
        total = b.Add(total, b.cast(other, total.dtype))
    size = b.Shape(total)
    return [b.Expand(x, size) for x in tensors]


def flattened_from(b: Builder, x: Tensor, axis: int) -> Tensor:
    """With the dims from `axis` on made one."""
    sizes = sizes_of(b, x)
    known = [size for size in sizes if not isinstance(size, Tensor)]
    if len(known) == len(sizes):
        return b.reshape(x, [*known[:axis], product_of(known[axis:])])
    # No -1, which has no meaning beside a size of 0.
    rest = b.ReduceProd(b.Shape(x, start=axis), None, keepdims=1)
    return reshape_to(b, x, [*sizes[:axis], rest])


def arange(b: Builder, length: Dim | Tensor) -> Tensor:
    """The int64 indices 0 .. length - 1."""
    if isinstance(length, int) and length <= _LARGEST_CONSTANT:
        return b.const(torch.arange(length))
    end = b.squeeze(length, [0]) if isinstance(length, Tensor) and length.rank == 1 else length
    result = b.Range(b.scalar(0), b.scalar(end, torch.int64), b.scalar(1))
    return b.with_shape(result, [None if isinstance(length, Tensor) else length])


def from_front(b: Builder, index: Dim | Tensor, size: Dim) -> Dim | Tensor:
    """An index or slice bound counted from the front: a negative one counts from the end."""
    if not isinstance(index, Tensor):
        if index.is_nonnegative if isinstance(index, sympy.Expr) else index >= 0:
            return index
        if isinstance(index, int):
            return plain(size + index)
    index = b.size(index)
    return b.Where(b.Less(index, 0), b.Add(index, b.size(size)), index)


def slice_start(b: Builder, start: Dim | Tensor | None, size: Dim) -> Dim | Tensor:
    """Where a slice starts, counted from the front. It may lie beyond the end."""
    if start is None:
        return 0
    counted = from_front(b, start, size)
    if isinstance(counted, int):
        return max(counted, 0)
    if isinstance(counted, sympy.Expr) and counted.is_nonnegative:
        return counted
    return b.Max(b.size(counted), b.size(0))


def plus(b: Builder, left: Dim | Tensor, right: Dim | Tensor) -> Dim | Tensor:
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return b.Add(b.size(left), b.size(right))
    return plain(left + right)


def choose(b: Builder, condition: Tensor, then: Tensor, otherwise: Tensor) -> Tensor:
    """Where, for every dtype: runtimes have no kernel of it for bool."""
    if then.dtype == torch.bool:
        return b.Or(b.And(condition, then), b.And(b.Not(condition), otherwise))
    return b.Where(condition, then, otherwise)
