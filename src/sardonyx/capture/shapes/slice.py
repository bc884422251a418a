"""The lengths of pieces of dims whose size is open.

PyTorch takes x[:5] for five elements once the example has that many; a shorter x has fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import WeakSet

import sympy
import torch

from sardonyx import _torch_private

aten = torch.ops.aten
Size = int | torch.SymInt
_TO_THE_END = 2**63 - 1
_max: Callable[[Any, Any], Any] = torch.sym_max
_min: Callable[[Any, Any], Any] = torch.sym_min
_OF_PROGRAMS: WeakSet[Any] = WeakSet()
"""The fake modes in which no bound is taken to fit."""


def take_no_bound_for_granted(mode: Any) -> None:
    """Of a program that is read, not run: a slice may lie in a branch that the example's sizes do
    not take."""
    _OF_PROGRAMS.add(mode)


def _slice(
    self: torch.Tensor,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: Size = 1,
) -> torch.Tensor:
    size = self.shape[dim] if self.dim() else 0
    if isinstance(step, torch.SymInt):
        length = _torch_private.new_data_dependent_size_of(self)
        return _piece(self, dim % self.dim(), _first(start, size), length, step)
    if end is not None and isinstance(end, int) and end == _TO_THE_END:
        end = None
    if not (isinstance(step, int) and step > 0 and _may_be_cut(self, size, start, end)):
        sliced: torch.Tensor = _torch_private.slice_of_fake(self, dim, start, end, step)
        return sliced
    axis = dim % self.dim()
    length = (_length(start, end, size) + step - 1) // step
    return _piece(self, axis, _first(start, size), length, step)


def _piece(x: torch.Tensor, axis: int, start: Any, length: Any, step: Size = 1) -> torch.Tensor:
    sizes: list[Any] = list(x.shape)
    strides: list[Any] = list(x.stride())
    offset = x.storage_offset() + start * strides[axis]
    sizes[axis] = length
    strides[axis] *= step
    return x.as_strided(sizes, strides, offset)


def _may_be_cut(self: torch.Tensor, size: Size, start: Size | None, end: Size | None) -> bool:
    """Whether the length depends on where the bounds lie in the dim: numbers in a dim of an open
    size, and integers that the caller gives. PyTorch's own rule is for all else: that a size is
    a bound which fits, as in buffer[:n], is what a recorded model takes for granted."""
    bounds = [b for b in (start, end) if b is not None]
    numbers = [b for b in bounds if isinstance(b, int)]
    if not _torch_private.is_input_size(self, size):
        return False
    if len(numbers) == len(bounds):
        return not isinstance(size, int) and any(b != 0 for b in bounds)
    if _torch_private.fake_mode_of(self) in _OF_PROGRAMS:
        return all(_torch_private.is_input_size(self, b) for b in bounds)
    if all(isinstance(b, int) or _is_given(self, b) for b in bounds):
        return True
    return not _fits_its_dim(*map(_torch_private.dim_of, (size, start, end)))


_MOST_TRIED = 32


@cache
def _fits_its_dim(size: Any, start: Any, end: Any) -> bool:
    """Whether bounds that are computed from the size of their own dim lie in it whatever that is,
    as those of x[n // 2 : n - 1] do and those of x[n // 2 : 3] do not. Tried rather than proved;
    bounds that are computed from other sizes are taken to fit."""
    symbols: set[Any] = getattr(size, "free_symbols", set())
    bounds = [0 if start is None else start, size if end is None else end]
    if len(symbols) != 1 or any(getattr(b, "free_symbols", set()) - symbols for b in bounds):
        return True
    (symbol,) = symbols
    for tried in range(1, _MOST_TRIED):
        here = {symbol: sympy.Integer(tried)}
        try:
            count, first, last = (int(sympy.sympify(b).xreplace(here)) for b in (size, *bounds))
        except (ZeroDivisionError, TypeError):
            continue  # there is no such size
        # A negative number counts from the end; an expression was none in the example.
        from_front = [
            place + count if isinstance(bound, int) and place < 0 else place
            for place, bound in zip((first, last), bounds, strict=True)
        ]
        if from_front[1] - from_front[0] != len(range(count)[first:last]):
            return False
    return True


def _is_given(self: torch.Tensor, bound: Size) -> bool:
    expression = _torch_private.dim_of(bound)
    return (
        isinstance(expression, sympy.Expr)
        and any(not s.is_nonnegative for s in expression.free_symbols)
        and _torch_private.is_input_size(self, bound)
    )


def _first(start: Size | None, size: Size) -> Any:
    return 0 if start is None else _from_front(start, size)


def _from_front(bound: Size, size: Size) -> Any:
    """A bound as Python counts it, within the dim."""
    if isinstance(bound, int):
        return _min(bound, size) if bound >= 0 else _max(0, size + bound)
    if _torch_private.dim_of(bound).is_nonnegative:
        return _min(bound, size)
    is_negative = _min(1, _max(0, -bound))
    return _max(0, _min(size, bound + size * is_negative))


def _length(start: Size | None, end: Size | None, size: Size) -> Any:
    first = start or 0 if isinstance(start, (int, type(None))) else None
    if first is not None and end is None:
        return _max(0, size - first) if first >= 0 else _min(-first, size)
    if first is not None and isinstance(end, int):
        if first >= 0 and end >= 0:
            return _max(0, _min(end - first, size - first))
        if first >= 0:
            return _max(0, size + end - first)
        if end < 0:
            return _max(0, _min(end - first, size + end))
    return _max(0, (size if end is None else _from_front(end, size)) - _first(start, size))


def _slice_scatter(
    self: torch.Tensor,
    src: torch.Tensor,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: Size = 1,
) -> torch.Tensor:
    return torch.empty_like(self)


def _tensor_split(self: torch.Tensor, sections: int, dim: int = 0) -> list[torch.Tensor]:
    axis = dim % self.dim()
    size = self.shape[axis]
    least, longer = size // sections, size % sections
    return [
        _piece(self, axis, least * k + _min(k, longer), (size + sections - 1 - k) // sections)
        for k in range(sections)
    ]


def _chunk_cat(tensors: list[torch.Tensor], dim: int, num_chunks: int) -> torch.Tensor:
    axis = dim % tensors[0].dim()
    width: Any = 0
    for tensor in tensors:
        chunk: Any = (tensor.shape[axis] + num_chunks - 1) // num_chunks
        for size in tensor.shape[axis + 1 :]:
            chunk = chunk * size
        width = width + chunk
    return tensors[0].new_empty([*tensors[0].shape[:axis], num_chunks, width])


def _diff(
    self: torch.Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: torch.Tensor | None = None,
    append: torch.Tensor | None = None,
) -> torch.Tensor:
    sizes: list[Any] = list(self.shape)
    axis = dim % self.dim()
    for more in (prepend, append):
        sizes[axis] += 0 if more is None else more.shape[axis]
    sizes[axis] = _max(0, sizes[axis] - n)
    return self.new_empty(sizes)


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    aten.slice.Tensor: _slice,
    aten.slice_scatter.default: _slice_scatter,
    aten.tensor_split.sections: _tensor_split,
    aten._chunk_cat.default: _chunk_cat,
    aten.diff.default: _diff,
}
