"""Lists of a TorchScript program.

A list whose length is known is a Python list of what it holds: nothing of it reaches the file. Any
other is a sequence of tensors, or one tensor where its items are numbers or lie stacked in one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import sympy
import torch

from sardonyx.capture import sequences
from sardonyx.capture.graph import Argument, SequenceType, TensorType, Value
from sardonyx.capture.script_numbers import ScriptNumbers
from sardonyx.capture.script_patterns import (
    CannotJoin,
    DynamicListOf,
    OpenDims,
    as_dynamic,
    join,
    state_pattern,
)
from sardonyx.capture.script_values import (
    ComputedNumber,
    DynamicItems,
    Heap,
    ListItems,
    ScriptList,
    is_number,
    number_dtype,
)
from sardonyx.errors import CaptureError

_aten = torch.ops.aten


class ListReader(Protocol):
    heap: Heap
    numbers: ScriptNumbers

    def emit(self, op: Any, args: Sequence[Argument], **kwargs: Argument) -> list[Value]: ...

    def emit_typed(
        self,
        op: Any,
        args: Sequence[Argument],
        dtype: torch.dtype,
        dims: OpenDims,
        *,
        is_sequence: bool = False,
    ) -> Value:
        """A call whose type PyTorch does not say; unknown dims become symbols."""

    def repeat(
        self,
        count: Argument,
        start: Sequence[Argument],
        body: Callable[[Argument, Sequence[Argument]], list[Argument]],
    ) -> list[Argument]:
        """A loop that the program does not have itself; `body` gives what is carried on."""


class ScriptLists:
    def __init__(self, reader: ListReader) -> None:
        self._reader = reader

    def new(self, items: ListItems | Sequence[Argument]) -> ScriptList:
        made: ScriptList = self._reader.heap.new(ScriptList(items))
        return made

    # -- what is asked of a list -----------------------------------------------------------------

    def length(self, items: ListItems) -> Argument:
        if isinstance(items, tuple):
            return len(items)
        if items.is_sequence:
            length = self._reader.emit_typed(
                sequences.SEQUENCE_LENGTH, [items.content], torch.int64, ()
            )
            return ComputedNumber(length)
        return items.content.shape[0]

    def at(self, items: ListItems, index: Argument) -> Argument:
        if isinstance(items, tuple):
            if isinstance(index, int):
                if not -len(items) <= index < len(items):
                    raise CaptureError(f"list index {index} of a list of {len(items)}")
                return items[index]
            items = self.as_dynamic(items)
        position = self._reader.numbers.as_scalar(index)
        if items.is_sequence:
            content = items.content
            return self._reader.emit_typed(
                sequences.SEQUENCE_AT, [content, position], content.dtype, content.shape
            )
        found = self._reader.emit(_aten.select.int, [items.content, 0, position])[0]
        return ComputedNumber(found) if items.of_numbers else found

    def contains(self, items: ListItems, item: Argument) -> Argument:
        if isinstance(items, tuple):
            found: Argument = False
            for held in items:
                same = self._reader.numbers.compute("aten::eq", [held, item], torch.bool)
                found = self._reader.numbers.compute("aten::__or__", [found, same], torch.bool)
            return found
        equal = self._reader.emit(
            _aten.eq.Tensor, [items.content, self._reader.numbers.as_tensor(item)]
        )[0]
        return ComputedNumber(self._reader.emit(_aten.any.default, [equal])[0])

    def sliced(
        self, items: ListItems, start: Argument, end: Argument, step: Argument = 1
    ) -> ListItems:
        if isinstance(items, tuple):
            if all(b is None or isinstance(b, int) for b in (start, end, step)):
                return items[start:end:step]
            items = self.as_dynamic(items)
        if not isinstance(step, int) or step < 1:
            raise CaptureError(
                "a list of dynamic length cannot be sliced by a step that is not > 0"
            )
        numbers = self._reader.numbers
        if not items.is_sequence:
            bounds = [None if b is None else numbers.as_scalar(b) for b in (start, end)]
            content = self._reader.emit(_aten.slice.Tensor, [items.content, 0, *bounds, step])[0]
            return DynamicItems(content, items.of_numbers)
        length = self.length(items)
        first = self._bounded(0 if start is None else start, length)
        last = self._bounded(length if end is None else end, length)
        span = numbers.compute("aten::sub", [last, first], torch.int64)
        span = numbers.compute("aten::add", [span, step - 1], torch.int64)
        count = numbers.compute("aten::floordiv", [span, step], torch.int64)

        def body(iteration: Argument, carried: Sequence[Argument]) -> list[Argument]:
            offset = numbers.compute("aten::mul", [iteration, step], torch.int64)
            place = numbers.compute("aten::add", [first, offset], torch.int64)
            kept = carried[0]
            self.insert(kept, None, self.at(items, place))
            return [kept]

        count = numbers.compute("prim::max", [count, 0], torch.int64)
        (made,) = self._reader.repeat(count, [self._empty_like(items)], body)
        result: ListItems = made.state
        return result

    def _bounded(self, index: Argument, length: Argument) -> Argument:
        """A bound of a slice as Python reads it: from the end where it is negative, and inside."""
        numbers = self._reader.numbers
        if isinstance(index, int) and index >= 0:
            return numbers.compute("prim::min", [index, length], torch.int64)
        from_end = numbers.compute("aten::add", [index, length], torch.int64)
        if isinstance(index, int):
            return numbers.compute("prim::max", [from_end, 0], torch.int64)
        position = self._reader.emit(
            _aten.where.self,
            [
                numbers.as_tensor(numbers.compute("aten::lt", [index, 0], torch.bool)),
                numbers.as_tensor(from_end),
                numbers.as_tensor(index),
            ],
        )[0]
        positive = numbers.compute("prim::max", [ComputedNumber(position), 0], torch.int64)
        return numbers.compute("prim::min", [positive, length], torch.int64)

    # -- what changes a list ---------------------------------------------------------------------

    def insert(self, target: ScriptList, position: Argument, item: Argument) -> None:
        """Before a position; None for the end."""
        self._reader.heap.set(target, self._with_item(target.state, position, item))

    def _with_item(self, items: ListItems, position: Argument, item: Argument) -> ListItems:
        if isinstance(items, tuple):
            if position is None or isinstance(position, int):
                held = list(items)
                held.insert(len(held) if position is None else position, item)
                return tuple(held)
            items = self.as_dynamic(items, like=item)
        if items.of_numbers:
            return self._with_number(items, position, item)
        sequence = self._sequence(items).content
        index = None if position is None else self._reader.numbers.as_scalar(position)
        dims = tuple(
            a if a == b and isinstance(a, int) else None
            for a, b in zip(sequence.shape, item.shape, strict=True)
        )
        if item.dtype != sequence.dtype:
            raise CaptureError(f"a list holds tensors of {sequence.dtype} and of {item.dtype}")
        return DynamicItems(
            self._reader.emit_typed(
                sequences.SEQUENCE_INSERT,
                [sequence, item, index],
                sequence.dtype,
                dims,
                is_sequence=True,
            ),
            of_numbers=False,
        )

    def _with_number(self, items: DynamicItems, position: Argument, item: Argument) -> DynamicItems:
        number = self._reader.numbers.as_tensor(item, items.content.dtype)
        one = self._reader.emit(_aten.reshape.default, [number, [1]])[0]
        parts = [items.content, one]
        if position is not None:
            before, after = (
                self.sliced(items, *bounds) for bounds in ((None, position), (position, None))
            )
            assert isinstance(before, DynamicItems) and isinstance(after, DynamicItems)
            parts = [before.content, one, after.content]
        return DynamicItems(self._reader.emit(_aten.cat.default, [parts, 0])[0], of_numbers=True)

    def erase(self, target: ScriptList, position: Argument) -> None:
        items = target.state
        if isinstance(items, tuple):
            if isinstance(position, int):
                held = list(items)
                if not -len(held) <= position < len(held):
                    raise CaptureError(f"pop index {position} of a list of {len(held)}")
                del held[position]
                self._reader.heap.set(target, tuple(held))
                return
            items = self.as_dynamic(items)
        if items.of_numbers:
            length = self.length(items)
            index = self._bounded(position, length)
            after = self._reader.numbers.compute("aten::add", [index, 1], torch.int64)
            left, right = self.sliced(items, None, index), self.sliced(items, after, None)
            assert isinstance(left, DynamicItems) and isinstance(right, DynamicItems)
            parts = [left.content, right.content]
            content = self._reader.emit(_aten.cat.default, [parts, 0])[0]
            self._reader.heap.set(target, DynamicItems(content, of_numbers=True))
            return
        self._reader.heap.set(target, self._erased(self._sequence(items), position))

    def _erased(self, items: DynamicItems, position: Argument) -> DynamicItems:
        content = items.content
        index = self._reader.numbers.as_scalar(position)
        made = self._reader.emit_typed(
            sequences.SEQUENCE_ERASE,
            [content, index],
            content.dtype,
            content.shape,
            is_sequence=True,
        )
        return DynamicItems(made, of_numbers=False)

    def set(self, target: ScriptList, position: Argument, item: Argument) -> None:
        items = target.state
        if isinstance(items, tuple):
            if isinstance(position, int):
                held = list(items)
                if not -len(held) <= position < len(held):
                    raise CaptureError(f"list index {position} of a list of {len(held)}")
                held[position] = item
                self._reader.heap.set(target, tuple(held))
                return
            items = self.as_dynamic(items, like=item)
        if items.of_numbers:
            number = self._reader.numbers.as_tensor(item, items.content.dtype)
            index = self._reader.numbers.as_tensor(position)
            content = self._reader.emit(_aten.index_put.default, [items.content, [index], number])[
                0
            ]
            self._reader.heap.set(target, DynamicItems(content, of_numbers=True))
            return
        sequence = self._sequence(items)
        if not isinstance(position, int) or position < 0:
            position = self._bounded(position, self.length(sequence))
        self._reader.heap.set(
            target, self._with_item(self._erased(sequence, position), position, item)
        )

    def extend(self, target: ScriptList, other: ListItems) -> None:
        self._reader.heap.set(target, self.joined(target.state, other))

    def joined(self, first: ListItems, second: ListItems) -> ListItems:
        if isinstance(second, tuple):
            for item in second:
                first = self._with_item(first, None, item)
            return first
        if isinstance(first, tuple):
            if not first:
                return second
            pattern = join(as_dynamic(self._pattern(first)), self._pattern(second))
            assert isinstance(pattern, DynamicListOf)
            first = DynamicItems(self.dynamic_content(first, pattern), pattern.of_numbers)
        if first.of_numbers or not (first.is_sequence or second.is_sequence):
            parts = [first.content, second.content]
            content = self._reader.emit(_aten.cat.default, [parts, 0])[0]
            return DynamicItems(content, first.of_numbers)
        start, rest = self._sequence(first), second

        def body(iteration: Argument, carried: Sequence[Argument]) -> list[Argument]:
            kept = carried[0]
            self.insert(kept, None, self.at(rest, iteration))
            return [kept]

        (made,) = self._reader.repeat(self.length(rest), [self.new(start)], body)
        result: ListItems = made.state
        return result

    def reversed(self, items: ListItems) -> ListItems:
        if isinstance(items, tuple):
            return items[::-1]
        if not items.is_sequence:
            content = self._reader.emit(_aten.flip.default, [items.content, [0]])[0]
            return DynamicItems(content, items.of_numbers)
        held = items

        def body(iteration: Argument, carried: Sequence[Argument]) -> list[Argument]:
            kept = carried[0]
            self.insert(kept, 0, self.at(held, iteration))
            return [kept]

        (made,) = self._reader.repeat(self.length(items), [self._empty_like(items)], body)
        result: ListItems = made.state
        return result

    # -- lists as tensors ------------------------------------------------------------------------

    def concatenated(self, items: DynamicItems, dim: int) -> Value:
        """`torch.cat`."""
        if items.is_sequence:
            return self._concat(items.content, dim, new_dim=False)
        stacked = items.content
        rank = stacked.type.rank - 1
        axis = dim % max(rank, 1)
        moved = self._reader.emit(_aten.movedim.int, [stacked, 0, axis])[0]
        sizes = list(stacked.shape[1:])
        sizes[axis] = sizes[axis] * stacked.shape[0]
        return self._reader.emit(_aten.reshape.default, [moved, sizes])[0]

    def stacked(self, items: DynamicItems, dim: int) -> Value:
        """`torch.stack`."""
        if items.is_sequence:
            return self._concat(items.content, dim, new_dim=True)
        axis = dim % items.content.type.rank
        if axis == 0:
            return items.content
        return self._reader.emit(_aten.movedim.int, [items.content, 0, axis])[0]

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

    def as_dynamic(self, items: ListItems, like: Argument = None) -> DynamicItems:
        if isinstance(items, DynamicItems):
            return items
        pattern = self._pattern(items if like is None else (*items, like))
        try:
            dynamic = as_dynamic(pattern)
        except CannotJoin as reason:
            raise CaptureError(
                f"a list is indexed by a number that is computed, and holds {reason}"
            ) from reason
        return DynamicItems(self.dynamic_content(items, dynamic), dynamic.of_numbers)

    def dynamic_content(self, items: ListItems, pattern: DynamicListOf) -> Value:
        """The tensor or sequence of a list that fits the pattern."""
        if isinstance(items, DynamicItems):
            return self._sequence(items).content if pattern.is_sequence else items.content
        if pattern.of_numbers:
            return self.numbers_tensor(items, pattern.dtype)
        if not items and pattern.is_sequence:
            return self._reader.emit_typed(
                sequences.SEQUENCE_EMPTY,
                [pattern.dtype],
                pattern.dtype,
                pattern.dims,
                is_sequence=True,
            )
        if pattern.is_sequence:
            dims = tuple(d if isinstance(d, int) else None for d in pattern.dims)
            return self._reader.emit_typed(
                sequences.SEQUENCE, [list(items)], pattern.dtype, dims, is_sequence=True
            )
        if not items:
            sizes = [0, *pattern.dims]
            return self._reader.emit(_aten.zeros.default, [sizes], dtype=pattern.dtype)[0]
        return self._reader.emit(_aten.stack.default, [list(items), 0])[0]

    def numbers_tensor(self, items: Sequence[Argument], dtype: torch.dtype | None = None) -> Value:
        """The 1-D tensor of numbers."""
        if dtype is None:
            kinds = {number_dtype(item) for item in items}
            dtype = next(
                (d for d in (torch.float64, torch.int64, torch.bool) if d in kinds), torch.int64
            )
        if all(not isinstance(i, (ComputedNumber, sympy.Basic)) for i in items):
            tensor = torch.tensor(list(items), dtype=dtype)
            return Value("numbers", TensorType(dtype, tuple(tensor.shape)), constant=tensor)
        parts = [self._reader.numbers.as_tensor(item, dtype) for item in items]
        return self._reader.emit(_aten.stack.default, [parts, 0])[0]

    def _sequence(self, items: DynamicItems) -> DynamicItems:
        if items.is_sequence:
            return items
        content = items.content
        made = self._reader.emit_typed(
            sequences.SEQUENCE_UNSTACK,
            [content],
            content.dtype,
            tuple(d if isinstance(d, int) else None for d in content.shape[1:]),
            is_sequence=True,
        )
        return DynamicItems(made, of_numbers=False)

    def _empty_like(self, items: DynamicItems) -> ScriptList:
        content = items.content
        assert isinstance(content.type, SequenceType)
        pattern = DynamicListOf(content.dtype, content.shape, of_numbers=False, is_sequence=True)
        return self.new(DynamicItems(self.dynamic_content((), pattern), of_numbers=False))

    def _pattern(self, items: ListItems) -> Any:
        return state_pattern(items, lambda size: False)


def is_list_of_numbers(items: ListItems) -> bool:
    if isinstance(items, DynamicItems):
        return items.of_numbers
    return all(map(is_number, items))
