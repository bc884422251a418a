"""The shapes of slices, gathered elements and reshaped tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.shape_rules.layers import like_input
from sardonyx.aten.shape_rules.slice_lengths import counted_from_front, fitting, form_of_length

aten = torch.ops.aten
Size = int | torch.SymInt
_max: Callable[[Any, Any], Any] = torch.sym_max
_min: Callable[[Any, Any], Any] = torch.sym_min

# -- gathered elements -----------------------------------------------------------------------------


def _take_along_dim(
    self: torch.Tensor, indices: torch.Tensor, dim: int | None = None
) -> torch.Tensor:
    if dim is None:
        return self.new_empty([indices.numel()])
    axis = dim % self.dim()
    own, wanted = list(self.shape), list(indices.shape)
    count, own[axis], wanted[axis] = wanted[axis], 1, 1
    sizes = list(torch.broadcast_shapes(own, wanted))  # type: ignore[no-untyped-call]
    sizes[axis] = count
    return self.new_empty(sizes)


def _index(self: torch.Tensor, indices: list[torch.Tensor | None]) -> torch.Tensor:
    # Beside a mask, PyTorch loses the elements that an index without dims is broadcast to.
    has_mask = any(i is not None and i.dtype in _MASKS and i.dim() for i in indices)
    given = [
        i.reshape(1) if has_mask and i is not None and not i.dim() and i.dtype not in _MASKS else i
        for i in indices
    ]
    indexed: torch.Tensor = torch.ops.aten.index.Tensor(self, given)
    return indexed


_MASKS = (torch.bool, torch.uint8)

# -- reshaped tensors ------------------------------------------------------------------------------
# x.view(-1, 4) has 4 columns; PyTorch infers n // (n // 4).


def _as_requested(op: Any) -> Callable[..., torch.Tensor]:
    def reshaped(self: torch.Tensor, size: Sequence[Any]) -> torch.Tensor:
        if not size and any(map(_torch_private.is_decided_by_data, self.shape)):
            # One element: PyTorch squeezes, which keeps a dim whose size may be another.
            return self.as_strided((), ())
        made: torch.Tensor = _torch_private.with_requested_sizes(op(self, size), size)
        return made

    return reshaped


def _unflatten(self: torch.Tensor, dim: int, sizes: Sequence[Any]) -> torch.Tensor:
    axis = dim % self.dim()
    requested = [*self.shape[:axis], *sizes, *self.shape[axis + 1 :]]
    made = aten.unflatten.int(self, dim, sizes)
    reshaped: torch.Tensor = _torch_private.with_requested_sizes(made, requested)
    return reshaped


# -- slices ----------------------------------------------------------------------------------------
# PyTorch infers five elements for x[:5] if the example has that many; a shorter x has fewer.


_TO_THE_END = 2**63 - 1
_OF_PROGRAMS: WeakSet[Any] = WeakSet()
"""Fake modes in which slice bounds are not assumed to fit."""


def take_no_bound_for_granted(mode: Any) -> None:
    """For a program that is read, not run: a slice may be in a branch that the example does not
    take."""
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
    known = isinstance(step, int) and step > 0
    length = _exact_length(self, size, start, end) if known else None
    if length is None:
        sliced: torch.Tensor = aten.slice.Tensor(self, dim, start, end, step)
        return sliced
    axis = dim % self.dim()
    return _piece(self, axis, _first(start, size), (length + step - 1) // step, step)


def _piece(x: torch.Tensor, axis: int, start: Any, length: Any, step: Size = 1) -> torch.Tensor:
    sizes: list[Any] = list(x.shape)
    strides: list[Any] = list(x.stride())
    offset = x.storage_offset() + start * strides[axis]
    sizes[axis] = length
    strides[axis] *= step
    return x.as_strided(sizes, strides, offset)


def _exact_length(self: torch.Tensor, size: Size, start: Size | None, end: Size | None) -> Any:
    """The length where it depends on where the bounds lie in the dim; None leaves it to PyTorch's
    own rule. Of a table of 16 rows, table[:n] has Min(16, n)."""
    size, start, end = map(_plain, (size, start, end))
    bounds = [b for b in (start, end) if b is not None]
    if all(isinstance(b, int) for b in bounds):
        may_be_cut = not isinstance(size, int) and any(b != 0 for b in bounds)
        return _length(start, end, size) if may_be_cut else None
    if any(map(_torch_private.is_decided_by_data, (size, *bounds))):
        return None
    is_program = _torch_private.fake_mode_of(self) in _OF_PROGRAMS
    if not isinstance(size, int) and not is_program and not any(_is_given(b) for b in bounds):
        form = form_of_length(*map(_torch_private.dim_of, (size, start, end)))
        if form is fitting:
            return None
        if form is not None:
            return form(size, *counted_from_front(size, start, end), _max, _min)
    return _length(start, end, size)


def _plain(size: Any) -> Any:
    """The number where a symbolic size is one."""
    number = _torch_private.dim_of(size)
    return number if isinstance(number, int) else size


def _is_given(bound: Size) -> bool:
    expression = _torch_private.dim_of(bound)
    return isinstance(expression, sympy.Expr) and any(
        not s.is_nonnegative for s in expression.free_symbols
    )


def _first(start: Size | None, size: Size) -> Any:
    return 0 if start is None else _from_front(start, size)


def _from_front(bound: Size, size: Size) -> Any:
    """A bound as Python counts it, within the dim."""
    if isinstance(bound, int):
        return _min(bound, size) if bound >= 0 else _max(0, size + bound)
    if _is_from_front(bound):
        return _min(bound, size)
    is_negative = _min(1, _max(0, -bound))
    return _max(0, _min(size, bound + size * is_negative))


def _is_from_front(bound: Size) -> bool:
    return bool(sympy.sympify(_torch_private.dim_of(bound)).is_nonnegative)


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
    if end is None and start is not None and _is_from_front(start):
        return _max(0, size - start)
    return _max(0, (size if end is None else _from_front(end, size)) - _first(start, size))


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
    for more in (prepend, append) if n else ():
        sizes[axis] += 0 if more is None else more.shape[axis]
    sizes[axis] = _max(0, sizes[axis] - n)
    return self.new_empty(sizes)


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.index.Tensor: _index,
    torch.ops.aten.take_along_dim.default: _take_along_dim,
    **{
        op: _as_requested(op)
        for op in (aten.view.default, aten.reshape.default, aten._unsafe_view.default)
    },
    aten.unflatten.int: _unflatten,
    aten.slice.Tensor: _slice,
    aten.slice_scatter.default: like_input,
    aten.tensor_split.sections: _tensor_split,
    aten._chunk_cat.default: _chunk_cat,
    aten.diff.default: _diff,
}
