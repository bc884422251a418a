"""ATen operators that take or return a list of dynamic length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx.aten import sequences
from sardonyx.aten.graph import Argument, Dim, Value
from sardonyx.capture.torchscript.containers.list_contents import check_can_be_split, known_length
from sardonyx.capture.torchscript.control_flow.joined_types import OpenDims
from sardonyx.capture.torchscript.errors import ScriptRefusal
from sardonyx.capture.torchscript.types.values import (
    ComputedNumber,
    DynamicItems,
    DynamicRows,
    ScriptList,
)

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

_aten = torch.ops.aten


class ListOperators:
    """Each method is one operator; None where no list of dynamic length is concerned."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._lists = reader.lists

    def call(self, name: str, operands: Sequence[Argument], unpacked: int | None) -> Argument:
        """`unpacked`: the number of variables that the result is unpacked into."""
        operator = _TAKING.get(name)
        if operator is not None and operands:
            items = _dynamic_items(operands[0])
            return None if items is None else operator(self, items, *operands[1:])
        giving = _GIVING.get(name)
        if giving is None or not isinstance(operands[0], Value):
            return None
        if unpacked is not None:
            return self._split_into(unpacked, *operands) if name == "aten::split" else None
        return giving(self, *operands)

    # -- lists as tensors ------------------------------------------------------------------------

    def concatenated(self, items: DynamicItems, dim: int = 0) -> Value:
        content = items.content
        if items.is_sequence:
            return self._concat(content, dim, new_dim=False)
        axis = dim % max(content.type.rank - 1, 1)
        sizes = list(content.shape[1:])
        sizes[axis] = sizes[axis] * content.shape[0]
        moved = content if axis == 0 else self._reader.call(_aten.movedim.int, content, 0, axis)
        # A write to this tensor must not change the items of the list.
        return self._reader.call(
            _aten.clone.default, self._reader.call(_aten.reshape.default, moved, sizes)
        )

    def stacked(self, items: DynamicItems, dim: int = 0) -> Value:
        if items.is_sequence:
            return self._concat(items.content, dim, new_dim=True)
        axis = dim % items.content.type.rank
        moved = items.content
        if axis:
            moved = self._reader.call(_aten.movedim.int, moved, 0, axis)
        return self._reader.call(_aten.clone.default, moved)

    def _concat(self, sequence: Value, dim: int, *, new_dim: bool) -> Value:
        rank = len(sequence.shape) + (1 if new_dim else 0)
        axis = dim % max(rank, 1)
        dims: list[Any] = list(sequence.shape)
        if new_dim:
            dims.insert(axis, None)
        else:
            dims[axis] = None
        return self._reader.emit_typed(
            sequences.SEQUENCE_CONCAT, [sequence, axis, new_dim], sequence.dtype, tuple(dims)
        )

    # -- tensors as lists ------------------------------------------------------------------------

    def unbound(self, tensor: Value, dim: int = 0) -> Argument:
        axis = dim % tensor.type.rank
        if isinstance(tensor.shape[axis], int):
            return None
        if axis:
            tensor = self._reader.call(_aten.movedim.int, tensor, axis, 0)
        return self._lists.new(DynamicItems(tensor, of_numbers=False))

    def split(self, tensor: Value, size: Argument, dim: int = 0) -> Argument:
        if isinstance(size, ScriptList):
            return self.split_with_sizes(tensor, size, dim)
        axis = dim % tensor.type.rank
        whole = tensor.shape[axis]
        if isinstance(whole, int) and isinstance(size, int):
            return None
        count = self._reader.numbers.divided_up(whole, size)
        return self._pieces(tensor, axis, size, count)

    def _split_into(self, count: int, tensor: Value, size: Argument, dim: int = 0) -> Argument:
        """The same, where the program unpacks a fixed number of pieces."""
        axis = dim % tensor.type.rank
        is_known = isinstance(tensor.shape[axis], int) and isinstance(size, int)
        if is_known or isinstance(size, ScriptList):
            return None
        numbers = self._reader.numbers
        ends = [numbers.compute("aten::mul", [size, i], torch.int64) for i in range(count + 1)]
        bounds = [numbers.as_scalar(end) for end in ends]
        return self._lists.new(
            [
                self._reader.call(_aten.slice.Tensor, tensor, axis, start, end)
                for start, end in pairwise(bounds)
            ]
        )

    def _pieces(self, tensor: Value, axis: int, size: Argument, count: Argument) -> Argument:
        """Of one size but for the last; one at least."""
        numbers = self._reader.numbers
        others = numbers.compute("aten::add", [count, -1], torch.int64)
        others = numbers.compute("prim::max", [others, 0], torch.int64)
        used = numbers.compute("aten::mul", [others, size], torch.int64)
        last = numbers.compute("aten::sub", [tensor.shape[axis], used], torch.int64)
        counts = [numbers.as_scalar(others)]
        equal = self._reader.call(
            _aten.full.default, counts, numbers.as_scalar(size), dtype=torch.int64
        )
        end = self._reader.call(_aten.reshape.default, numbers.as_tensor(last, torch.int64), [1])
        sizes = self._reader.call(_aten.cat.default, [equal, end], 0)
        return self._split(tensor, sizes, axis)

    def split_with_sizes(self, tensor: Value, sizes: Argument, dim: int = 0) -> Argument:
        state = sizes.state
        if not isinstance(state, DynamicItems) or known_length(state) is not None:
            return None
        return self._split(tensor, state.content, dim % tensor.type.rank)

    def chunk(self, tensor: Value, chunks: Argument, dim: int = 0) -> Argument:
        axis = dim % tensor.type.rank
        whole = tensor.shape[axis]
        if isinstance(chunks, int) and (isinstance(whole, int) or _is_multiple(whole, chunks)):
            return None
        numbers = self._reader.numbers
        size = numbers.divided_up(whole, chunks)
        # An empty dim is divided into `chunks` empty pieces.
        step = numbers.compute("prim::max", [size, 1], torch.int64)
        count = numbers.divided_up(whole, step)
        is_empty = numbers.compute("aten::eq", [whole, 0], torch.bool)
        choices = (numbers.as_tensor(n) for n in (is_empty, chunks, count))
        count_tensor = self._reader.call(_aten.where.self, *choices)
        return self._pieces(tensor, axis, size, ComputedNumber(count_tensor))

    def _split(self, tensor: Value, sizes: Value, axis: int) -> Argument:
        check_can_be_split(tensor.dtype)
        dims: OpenDims = tuple(None if a == axis else d for a, d in enumerate(tensor.shape))
        arguments = [tensor, sizes, axis]
        made = self._lists.sequence(sequences.SEQUENCE_SPLIT, arguments, tensor.dtype, dims)
        return self._lists.new(DynamicItems(made, of_numbers=False))


def _dynamic_items(operand: Argument) -> DynamicItems | None:
    if not isinstance(operand, ScriptList) or isinstance(operand.state, tuple):
        return None
    if isinstance(operand.state, DynamicRows):
        raise ScriptRefusal("an operator takes a list of tensors, and this is one of tuples")
    assert isinstance(operand.state, DynamicItems)
    return operand.state


def _is_multiple(size: Dim, count: int) -> bool:
    return count == 1 or (isinstance(size, sympy.Expr) and bool((size / count).is_integer))


_TAKING: dict[str, Callable[..., Argument]] = {
    "aten::cat": ListOperators.concatenated,
    "aten::concat": ListOperators.concatenated,
    "aten::concatenate": ListOperators.concatenated,
    "aten::stack": ListOperators.stacked,
}
_GIVING: dict[str, Callable[..., Argument]] = {
    "aten::unbind": ListOperators.unbound,
    "aten::split": ListOperators.split,
    "aten::split_with_sizes": ListOperators.split_with_sizes,
    "aten::chunk": ListOperators.chunk,
}
