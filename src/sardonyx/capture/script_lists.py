"""Lists of a TorchScript program.

A list whose length is known is a Python list of what it holds: nothing of it reaches the file. Of
the others those of numbers, and of tensors of one shape, are one tensor that has them stacked along
its first dim. What is left are sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import sympy
import torch

from sardonyx.capture import sequences
from sardonyx.capture.graph import Argument, TensorType, Value
from sardonyx.capture.script_blocks import EmptyListRead
from sardonyx.capture.script_numbers import ScriptNumbers
from sardonyx.capture.script_patterns import (
    CannotJoin,
    DynamicListOf,
    DynamicRowsOf,
    OpenDims,
    as_dynamic,
    dynamic_pattern,
    join_dynamic,
    state_pattern,
)
from sardonyx.capture.script_values import (
    ComputedNumber,
    Dynamic,
    DynamicItems,
    DynamicRows,
    Heap,
    ListItems,
    ScriptList,
    column_of,
    is_number,
    number_dtype,
)
from sardonyx.errors import CaptureError

_aten = torch.ops.aten
_SPLIT_BY_ONNXRUNTIME = frozenset(
    {
        torch.float16,
        torch.float32,
        torch.float64,
        torch.bool,
        torch.int32,
        torch.int64,
    }
)
"""Others it does not split into a sequence."""


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

    def ask_to_unroll(self, index: Argument) -> None:
        """Where a loop of known count computes the index, its iterations are written out."""


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
        if isinstance(items, DynamicRows):
            return self.length(items.columns[0])
        if items.is_sequence:
            length = self._reader.emit_typed(
                sequences.SEQUENCE_LENGTH, [items.content], torch.int64, ()
            )
            return ComputedNumber(length)
        return items.content.shape[0]

    def at(self, items: ListItems, index: Argument) -> Argument:
        length = known_length(items)
        if length is not None and isinstance(index, int) and not -length <= index < length:
            raise _out_of_range(index, length)
        if isinstance(items, tuple):
            if isinstance(index, int):
                return items[index]
            if not items:
                raise _out_of_range(index, 0)
            if not is_list_of_numbers(items):
                self._reader.ask_to_unroll(index)
            items = self.as_dynamic(items)
        if isinstance(items, DynamicRows):
            return tuple(self.at(column, index) for column in items.columns)
        position = self._reader.numbers.as_scalar(index)
        content = items.content
        if items.is_sequence:
            return self._reader.emit_typed(
                sequences.SEQUENCE_AT, [content, position], content.dtype, content.shape
            )
        found = self._reader.emit(_aten.select.int, [content, 0, position])[0]
        return ComputedNumber(found) if items.of_numbers else found

    def known_items(self, items: ListItems) -> tuple[Argument, ...] | None:
        """One value for each item, where their number is known."""
        if isinstance(items, tuple):
            return items
        length = known_length(items)
        return None if length is None else tuple(self.at(items, i) for i in range(length))

    def sliced(
        self, items: ListItems, start: Argument, end: Argument, step: Argument = 1
    ) -> ListItems:
        if isinstance(items, tuple):
            if all(b is None or isinstance(b, int) for b in (start, end, step)):
                return items[start:end:step]
            if not items:
                return items
            items = self.as_dynamic(items)
        if not isinstance(step, int) or step < 1:
            raise CaptureError(
                "a list of dynamic length cannot be sliced by a step that is not > 0"
            )
        if isinstance(items, DynamicRows):
            return DynamicRows(
                tuple(_dynamic(self.sliced(c, start, end, step)) for c in items.columns)
            )
        if not items.is_sequence:
            return DynamicItems(self._part(items.content, start, end, step), items.of_numbers)
        return self._slice_of_sequence(items, start, end, step)

    def _part(self, stacked: Value, start: Argument, end: Argument, step: int = 1) -> Value:
        numbers = self._reader.numbers
        bounds = [None if b is None else numbers.as_scalar(b) for b in (start, end)]
        return self._reader.emit(_aten.slice.Tensor, [stacked, 0, *bounds, step])[0]

    def _slice_of_sequence(
        self, items: DynamicItems, start: Argument, end: Argument, step: int
    ) -> ListItems:
        numbers = self._reader.numbers
        length = self.length(items)
        first = self._bounded(0 if start is None else start, length)
        last = self._bounded(length if end is None else end, length)
        span = numbers.compute("aten::sub", [last, first], torch.int64)
        span = numbers.compute("aten::add", [span, step - 1], torch.int64)
        count = numbers.compute("aten::floordiv", [span, step], torch.int64)
        count = numbers.compute("prim::max", [count, 0], torch.int64)

        def item(iteration: Argument) -> Argument:
            offset = numbers.compute("aten::mul", [iteration, step], torch.int64)
            return self.at(items, numbers.compute("aten::add", [first, offset], torch.int64))

        return self._gathered(count, item, items.content)

    def _gathered(
        self, count: Argument, item: Callable[[Argument], Argument], like: Value
    ) -> ListItems:
        """The sequence of what a function of the place gives."""
        pattern = DynamicListOf(like.dtype, like.shape, of_numbers=False, is_sequence=True)

        def body(iteration: Argument, carried: Sequence[Argument]) -> list[Argument]:
            self.insert(carried[0], None, item(iteration))
            return [carried[0]]

        empty = self.new(DynamicItems(self.dynamic_content((), pattern), of_numbers=False))
        (made,) = self._reader.repeat(count, [empty], body)
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

    def erase(self, target: ScriptList, position: Argument) -> None:
        self._reader.heap.set(target, self._without(target.state, position))

    def set(self, target: ScriptList, position: Argument, item: Argument) -> None:
        self._reader.heap.set(target, self._with_replaced(target.state, position, item))

    def extend(self, target: ScriptList, other: ListItems) -> None:
        self._reader.heap.set(target, self.joined(target.state, other))

    def _with_item(self, items: ListItems, position: Argument, item: Argument) -> ListItems:
        if isinstance(items, tuple):
            if position is None or isinstance(position, int):
                held = list(items)
                held.insert(len(held) if position is None else position, item)
                return tuple(held)
            items = self.as_dynamic(items, like=item)
        if isinstance(items, DynamicRows):
            columns = (
                self._with_item(c, position, part)
                for c, part in zip(items.columns, item, strict=True)
            )
            return DynamicRows(tuple(map(_dynamic, columns)))
        dims: OpenDims = ()
        if not items.of_numbers:
            items, dims = self._fitting(items, item)
        if not items.is_sequence:
            one = self._stack([item], items)
            if position is None:
                return self._cat([items.content, one], items)
            place = self._bounded(position, self.length(items))
            before = self._part(items.content, None, place)
            return self._cat([before, one, self._part(items.content, place, None)], items)
        index = None
        if position is not None:
            index = self._reader.numbers.as_scalar(self._bounded(position, self.length(items)))
        sequence = items.content
        made = self._reader.emit_typed(
            sequences.SEQUENCE_INSERT,
            [sequence, item, index],
            sequence.dtype,
            dims,
            is_sequence=True,
        )
        return DynamicItems(made, of_numbers=False)

    def _fitting(self, items: DynamicItems, item: Argument) -> tuple[DynamicItems, OpenDims]:
        """The list as one that can hold the item, too, and the dims that both have."""
        here = dynamic_pattern(items, _is_known)
        there = as_dynamic(state_pattern((item,), _is_known), like=here)
        try:
            common = join_dynamic(here, there)
        except CannotJoin as reason:
            raise CaptureError(
                f"a list of dynamic length holds different types: {reason}"
            ) from reason
        assert isinstance(common, DynamicListOf)
        return DynamicItems(self.dynamic_content(items, common), of_numbers=False), common.dims

    def _without(self, items: ListItems, position: Argument) -> ListItems:
        length = known_length(items)
        if length is not None and isinstance(position, int) and not -length <= position < length:
            raise _out_of_range(position, length)
        if isinstance(items, tuple):
            if isinstance(position, int):
                held = list(items)
                del held[position]
                return tuple(held)
            items = self.as_dynamic(items)
        if isinstance(items, DynamicRows):
            columns = (self._without(c, position) for c in items.columns)
            return DynamicRows(tuple(map(_dynamic, columns)))
        if items.is_sequence:
            return DynamicItems(self._erased(items.content, position), of_numbers=False)
        if position in (0, -1):
            bounds = (1, None) if position == 0 else (None, -1)
            return DynamicItems(self._part(items.content, *bounds), items.of_numbers)
        place = self._bounded(position, self.length(items))
        after = self._reader.numbers.compute("aten::add", [place, 1], torch.int64)
        parts = [
            self._part(items.content, None, place),
            self._part(items.content, after, None),
        ]
        return self._cat(parts, items)

    def _erased(self, sequence: Value, position: Argument) -> Value:
        index = self._reader.numbers.as_scalar(position)
        return self._reader.emit_typed(
            sequences.SEQUENCE_ERASE,
            [sequence, index],
            sequence.dtype,
            sequence.shape,
            is_sequence=True,
        )

    def _with_replaced(self, items: ListItems, position: Argument, item: Argument) -> ListItems:
        length = known_length(items)
        if length is not None and isinstance(position, int) and not -length <= position < length:
            raise _out_of_range(position, length)
        if isinstance(items, tuple):
            if isinstance(position, int):
                held = list(items)
                held[position] = item
                return tuple(held)
            if not items:
                raise _out_of_range(position, 0)
            if not is_list_of_numbers(items):
                self._reader.ask_to_unroll(position)
            items = self.as_dynamic(items, like=item)
        if isinstance(items, DynamicRows):
            columns = (
                self._with_replaced(c, position, part)
                for c, part in zip(items.columns, item, strict=True)
            )
            return DynamicRows(tuple(map(_dynamic, columns)))
        content = items.content
        if items.of_numbers:
            number = self._reader.numbers.as_tensor(item, content.dtype)
            index = self._reader.numbers.as_tensor(position)
            made = self._reader.emit(_aten.index_put.default, [content, [index], number])[0]
            return DynamicItems(made, of_numbers=True)
        items, _ = self._fitting(items, item)
        content = items.content
        if not items.is_sequence:
            place = self._reader.numbers.as_scalar(self._from_start(position, content.shape[0]))
            made = self._reader.emit_typed(
                sequences.ITEMS_SET, [content, item, place], content.dtype, content.shape
            )
            return DynamicItems(made, of_numbers=False)
        if not isinstance(position, int) or position < 0:
            position = self._from_start(position, self.length(items))
        erased = DynamicItems(self._erased(content, position), of_numbers=False)
        return self._with_item(erased, position, item)

    def _from_start(self, position: Argument, length: Argument) -> Argument:
        if isinstance(position, int) and position >= 0:
            return position
        return self._bounded(position, length)

    def joined(self, first: ListItems, second: ListItems) -> ListItems:
        if isinstance(second, tuple) and (isinstance(first, tuple) or not second):
            return first + second if isinstance(first, tuple) else first
        if isinstance(first, tuple) and not first:
            return second
        if isinstance(second, tuple):
            for item in second:
                first = self._with_item(first, None, item)
            return first
        start = _dynamic(first) if not isinstance(first, tuple) else self._like(first, second)
        if isinstance(start, DynamicRows) and isinstance(second, DynamicRows):
            pairs = zip(start.columns, second.columns, strict=True)
            return DynamicRows(tuple(_dynamic(self.joined(a, b)) for a, b in pairs))
        assert isinstance(start, DynamicItems) and isinstance(second, DynamicItems)
        common = join_dynamic(
            dynamic_pattern(start, _is_known), dynamic_pattern(second, _is_known)
        )
        assert isinstance(common, DynamicListOf)
        if not common.is_sequence:
            return self._cat([start.content, second.content], start)
        rest = second
        held = DynamicItems(self.dynamic_content(start, common), of_numbers=False)

        def body(iteration: Argument, carried: Sequence[Argument]) -> list[Argument]:
            self.insert(carried[0], None, self.at(rest, iteration))
            return [carried[0]]

        (made,) = self._reader.repeat(self.length(rest), [self.new(held)], body)
        result: ListItems = made.state
        return result

    def _like(self, items: tuple[Argument, ...], other: Dynamic) -> Dynamic:
        like = dynamic_pattern(other, _is_known)
        return self._converted(items, as_dynamic(state_pattern(items, _is_known), like=like))

    def repeated(self, items: ListItems, times: Argument) -> ListItems:
        if isinstance(items, tuple) and (isinstance(times, int) or not items):
            return items * times if isinstance(times, int) else items

        def body(iteration: Argument, carried: Sequence[Argument]) -> list[Argument]:
            self.extend(carried[0], items)
            return [carried[0]]

        if is_list_of_numbers(items):
            numbers = self.as_dynamic(items)
            assert isinstance(numbers, DynamicItems)
            count = self._reader.numbers.compute("prim::max", [times, 0], torch.int64)
            size = self._reader.numbers.as_scalar(count)
            made = self._reader.emit(_aten.repeat.default, [numbers.content, [size]])[0]
            return DynamicItems(made, of_numbers=True)
        (made,) = self._reader.repeat(times, [self.new(())], body)
        result: ListItems = made.state
        return result

    def reversed(self, items: ListItems) -> ListItems:
        if isinstance(items, tuple):
            return items[::-1]
        if isinstance(items, DynamicRows):
            return DynamicRows(tuple(_dynamic(self.reversed(c)) for c in items.columns))
        content = items.content
        if items.of_numbers:
            return DynamicItems(self._reader.emit(_aten.flip.default, [content, [0]])[0], True)
        if not items.is_sequence:
            made = self._reader.emit_typed(
                sequences.ITEMS_REVERSE, [content], content.dtype, content.shape
            )
            return DynamicItems(made, of_numbers=False)
        held, numbers = items, self._reader.numbers

        def item(iteration: Argument) -> Argument:
            place = numbers.compute("aten::sub", [-1, iteration], torch.int64)
            return self.at(held, place)

        return self._gathered(self.length(items), item, content)

    # -- lists as tensors ------------------------------------------------------------------------

    def as_dynamic(self, items: ListItems, like: Argument = None) -> Dynamic:
        """A list of known length as one that takes a computed index."""
        if not isinstance(items, tuple):
            return items
        try:
            pattern = as_dynamic(state_pattern((*items, *_given(like)), _is_known))
        except CannotJoin as reason:
            raise CaptureError(
                f"a list is read or changed at a place that is computed: {reason}"
            ) from reason
        return self._converted(items, _stacked_where_possible(pattern, len(items)))

    def _converted(self, items: ListItems, pattern: DynamicListOf | DynamicRowsOf) -> Dynamic:
        if isinstance(pattern, DynamicRowsOf):
            return DynamicRows(
                tuple(
                    self._converted(column_of(items, place), column)
                    for place, column in enumerate(pattern.columns)
                )
            )
        return DynamicItems(self.dynamic_content(items, pattern), pattern.of_numbers)

    def dynamic_content(self, items: ListItems, pattern: DynamicListOf) -> Value:
        """The tensor or sequence of a list that fits the pattern."""
        if isinstance(items, DynamicItems):
            if pattern.is_sequence and not items.is_sequence:
                return self._unstacked(items)
            return items.content
        assert isinstance(items, tuple)
        if pattern.of_numbers:
            return self.numbers_tensor(items, pattern.dtype)
        if pattern.is_sequence:
            return self._new_sequence(items, pattern)
        if not items:
            sizes = [0, *pattern.dims]
            return self._reader.emit(_aten.zeros.default, [sizes], dtype=pattern.dtype)[0]
        return self._stack(items, pattern)

    def _new_sequence(self, items: tuple[Argument, ...], pattern: DynamicListOf) -> Value:
        _check_sequence_of(pattern.dtype)
        op: Any = sequences.SEQUENCE if items else sequences.SEQUENCE_EMPTY
        arguments = [list(items)] if items else [pattern.dtype]
        return self._reader.emit_typed(
            op, arguments, pattern.dtype, pattern.dims, is_sequence=True
        )

    def _stack(self, items: Sequence[Argument], like: DynamicItems | DynamicListOf) -> Value:
        if like.of_numbers:
            dtype = like.dtype if isinstance(like, DynamicListOf) else like.content.dtype
            numbers = [self._reader.numbers.as_tensor(item, dtype) for item in items]
            ones = [self._reader.emit(_aten.reshape.default, [n, [1]])[0] for n in numbers]
            return ones[0] if len(ones) == 1 else self._reader.emit(_aten.cat.default, [ones, 0])[0]
        dims = (len(items), *items[0].shape)
        return self._reader.emit_typed(
            sequences.ITEMS_STACK, [list(items)], items[0].dtype, dims
        )

    def _cat(self, parts: list[Value], like: DynamicItems) -> DynamicItems:
        if like.of_numbers:
            content = self._reader.emit(_aten.cat.default, [parts, 0])[0]
            return DynamicItems(content, of_numbers=True)
        length = sum(part.shape[0] for part in parts)
        dims = (length, *parts[0].shape[1:])
        made = self._reader.emit_typed(sequences.ITEMS_JOIN, [parts], parts[0].dtype, dims)
        return DynamicItems(made, of_numbers=False)

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

    def as_sequence(self, items: DynamicItems) -> Value:
        return items.content if items.is_sequence else self._unstacked(items)

    def _unstacked(self, items: DynamicItems) -> Value:
        content = items.content
        _check_sequence_of(content.dtype)
        if content.dtype not in _SPLIT_BY_ONNXRUNTIME:
            shape = TensorType(content.dtype, content.shape[1:])
            count = content.shape[0]
            made = self._gathered(count, lambda i: self.at(items, i), Value("item", shape))
            assert isinstance(made, DynamicItems)
            return made.content
        return self._reader.emit_typed(
            sequences.SEQUENCE_UNSTACK, [content], content.dtype, content.shape[1:], is_sequence=True
        )


def known_length(items: ListItems) -> int | None:
    if isinstance(items, DynamicRows):
        return known_length(items.columns[0])
    return len(items) if isinstance(items, tuple) else items.known_length


def is_list_of_numbers(items: ListItems) -> bool:
    if isinstance(items, tuple):
        return all(map(is_number, items))
    return isinstance(items, DynamicItems) and items.of_numbers


def _is_known(size: sympy.Basic) -> bool:
    """Every size is, where no block is left."""
    return True


def _dynamic(items: ListItems) -> Dynamic:
    assert not isinstance(items, tuple)
    return items


def _given(item: Argument) -> tuple[Argument, ...]:
    return () if item is None else (item,)


def _stacked_where_possible(
    pattern: DynamicListOf | DynamicRowsOf, length: int
) -> DynamicListOf | DynamicRowsOf:
    if isinstance(pattern, DynamicRowsOf):
        columns = (_stacked_where_possible(c, length) for c in pattern.columns)
        return DynamicRowsOf(tuple(columns))
    if pattern.is_sequence and None not in pattern.dims:
        return replace(pattern, is_sequence=False, length=length)
    return pattern


def _check_sequence_of(dtype: torch.dtype) -> None:
    if dtype == torch.bfloat16 or dtype.is_complex:
        name = str(dtype).removeprefix("torch.")
        raise CaptureError(
            f"a list of {name} tensors has a length that is known at run time, and ONNX has no"
            f" sequences of {name}: stack items of one shape, or use float32"
        )


def check_splittable(dtype: torch.dtype) -> None:
    _check_sequence_of(dtype)
    if dtype not in _SPLIT_BY_ONNXRUNTIME:
        name = str(dtype).removeprefix("torch.")
        raise CaptureError(
            f"a tensor of {name} is split into parts whose number is known at run time, which ONNX"
            " Runtime does not do: cast it before"
        )


def _out_of_range(index: Argument, length: int) -> EmptyListRead | CaptureError:
    if not length:
        return EmptyListRead()
    return CaptureError(f"list index {index} of a list of {length}")


