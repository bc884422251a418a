"""Lists of a TorchScript program.

A list of known length is a tuple of its items: the list itself does not reach the file. A list of
dynamic length is one tensor that has the items stacked along its first dim, if they are numbers or
tensors of one shape, and otherwise a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from sardonyx.aten import sequences
from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.torchscript.containers.list_contents import (
    ListContents,
    is_any_known,
    is_list_of_numbers,
    known_length,
)
from sardonyx.capture.torchscript.control_flow.joined_types import (
    DynamicListOf,
    DynamicPattern,
    OpenDims,
    as_dynamic,
    dynamic_pattern,
    join_dynamic,
    state_pattern,
)
from sardonyx.capture.torchscript.errors import CannotJoin, ModelRaises, ScriptRefusal
from sardonyx.capture.torchscript.types.values import (
    ComputedNumber,
    Dynamic,
    DynamicItems,
    DynamicRows,
    ListItems,
    ScriptList,
    is_number,
)

_aten = torch.ops.aten


class ScriptLists(ListContents):
    # -- reads -----------------------------------------------------------------------------------

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
        _check_index(items, index)
        if isinstance(items, tuple):
            if isinstance(index, int):
                return items[index]
            if not is_list_of_numbers(items):
                self._reader.loops.ask_to_unroll(index)
            items = self.as_dynamic(items)
        if isinstance(items, DynamicRows):
            return tuple(self.at(column, index) for column in items.columns)
        position = self._reader.numbers.as_scalar(index)
        content = items.content
        if items.is_sequence:
            found = self._reader.emit_typed(
                sequences.SEQUENCE_AT, [content, position], content.dtype, content.shape
            )
        else:
            found = self._reader.call(_aten.select.int, content, 0, position)
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
        if not isinstance(step, int) or step == 0:
            raise ScriptRefusal(
                "a list of dynamic length is sliced with a step that is computed at run time"
            )
        if step < 0 and (start is not None or end is not None):
            raise ScriptRefusal(
                "a list of dynamic length is sliced backwards between bounds",
                "reverse() the list first",
            )
        if step < 0:
            return self.sliced(self.reversed(items), None, None, -step)
        if isinstance(items, DynamicRows):
            return _of_columns(items, lambda c: self.sliced(c, start, end, step))
        if not items.is_sequence:
            return DynamicItems(self._part(items.content, start, end, step), items.of_numbers)
        return self._slice_of_sequence(items, start, end, step)

    def _part(self, stacked: Value, start: Argument, end: Argument, step: int = 1) -> Value:
        numbers = self._reader.numbers
        bounds = [None if b is None else numbers.as_scalar(b) for b in (start, end)]
        return self._reader.call(_aten.slice.Tensor, stacked, 0, *bounds, step)

    def _slice_of_sequence(
        self, items: DynamicItems, start: Argument, end: Argument, step: int
    ) -> ListItems:
        numbers, length = self._reader.numbers, self.length(items)
        first = self._bounded(0 if start is None else start, length)
        last = length if end is None else self._bounded(end, length)
        span = numbers.compute("aten::sub", [last, first], torch.int64)
        count = numbers.divided_up(span, step)
        count = numbers.compute("prim::max", [count, 0], torch.int64)

        def add(target: ScriptList, iteration: Argument) -> None:
            offset = numbers.compute("aten::mul", [iteration, step], torch.int64)
            index = numbers.compute("aten::add", [first, offset], torch.int64)
            self.insert(target, None, self.at(items, index))

        return self._grown(count, add)

    def _grown(
        self, count: Argument, add: Callable[[ScriptList, Argument], None], start: ListItems = ()
    ) -> ListItems:
        """A list that begins as `start` and is added to in each of `count` iterations."""

        def body(iteration: Argument, carried: Sequence[Argument]) -> list[Argument]:
            add(carried[0], iteration)
            return [carried[0]]

        (made,) = self._reader.repeat(count, [self.new(start)], body)
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
        is_negative = numbers.compute("aten::lt", [index, 0], torch.bool)
        choices = (numbers.as_tensor(n) for n in (is_negative, from_end, index))
        position = self._reader.call(_aten.where.self, *choices)
        positive = numbers.compute("prim::max", [ComputedNumber(position), 0], torch.int64)
        return numbers.compute("prim::min", [positive, length], torch.int64)

    # -- changes ---------------------------------------------------------------------------------

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
            _common(items, item)
            parts = iter(item)
            return _of_columns(items, lambda c: self._with_item(c, position, next(parts)))
        dims: OpenDims = ()
        if not items.of_numbers or not is_number(item):
            items, dims = self._fitting(items, item)
        if not items.is_sequence:
            one = self.stack([item], items)
            if position is None:
                return self.cat([items.content, one], items)
            place = self._bounded(position, self.length(items))
            before = self._part(items.content, None, place)
            return self.cat([before, one, self._part(items.content, place, None)], items)
        index = None
        if position is not None:
            index = self._reader.numbers.as_scalar(self._bounded(position, self.length(items)))
        arguments = [items.content, item, index]
        made = self.sequence(sequences.SEQUENCE_INSERT, arguments, items.content.dtype, dims)
        return DynamicItems(made, of_numbers=False)

    def _fitting(self, items: DynamicItems, item: Argument) -> tuple[DynamicItems, OpenDims]:
        """The list as one that can hold the item, too, and the dims that both have."""
        common = _common(items, item)
        assert isinstance(common, DynamicListOf)
        return DynamicItems(self.dynamic_content(items, common), of_numbers=False), common.dims

    def _without(self, items: ListItems, position: Argument) -> ListItems:
        _check_index(items, position)
        if isinstance(items, tuple):
            if isinstance(position, int):
                held = list(items)
                del held[position]
                return tuple(held)
            items = self.as_dynamic(items)
        if isinstance(items, DynamicRows):
            return _of_columns(items, lambda c: self._without(c, position))
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
        return self.cat(parts, items)

    def _erased(self, sequence: Value, position: Argument) -> Value:
        arguments = [sequence, self._reader.numbers.as_scalar(position)]
        op = sequences.SEQUENCE_ERASE
        return self.sequence(op, arguments, sequence.dtype, sequence.shape)

    def _with_replaced(self, items: ListItems, position: Argument, item: Argument) -> ListItems:
        _check_index(items, position)
        if isinstance(items, tuple):
            if isinstance(position, int):
                held = list(items)
                held[position] = item
                return tuple(held)
            if not is_list_of_numbers(items):
                self._reader.loops.ask_to_unroll(position)
            items = self.as_dynamic(items, like=item)
        if isinstance(items, DynamicRows):
            _common(items, item)
            parts = iter(item)
            return _of_columns(items, lambda c: self._with_replaced(c, position, next(parts)))
        content = items.content
        if items.of_numbers and is_number(item):
            number = self._reader.numbers.as_tensor(item, content.dtype)
            index = self._reader.numbers.as_tensor(position)
            made = self._reader.call(_aten.index_put.default, content, [index], number)
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
        start = self._like(first, second) if isinstance(first, tuple) else first
        if isinstance(start, DynamicRows) and isinstance(second, DynamicRows):
            others = iter(second.columns)
            return _of_columns(start, lambda c: self.joined(c, next(others)))
        assert isinstance(start, DynamicItems) and isinstance(second, DynamicItems)
        common = join_dynamic(
            dynamic_pattern(start, is_any_known), dynamic_pattern(second, is_any_known)
        )
        assert isinstance(common, DynamicListOf)
        if not common.is_sequence:
            return self.cat([start.content, second.content], start)
        held = DynamicItems(self.dynamic_content(start, common), of_numbers=False)

        def add(target: ScriptList, index: Argument) -> None:
            self.insert(target, None, self.at(second, index))

        return self._grown(self.length(second), add, held)

    def _like(self, items: tuple[Argument, ...], other: Dynamic) -> Dynamic:
        like = dynamic_pattern(other, is_any_known)
        return self.converted(items, as_dynamic(state_pattern(items, is_any_known), like=like))

    def repeated(self, items: ListItems, times: Argument) -> ListItems:
        if isinstance(items, tuple) and (isinstance(times, int) or not items):
            return items * times if isinstance(times, int) else items
        if is_list_of_numbers(items):
            numbers = self.as_dynamic(items)
            assert isinstance(numbers, DynamicItems)
            count = self._reader.numbers.compute("prim::max", [times, 0], torch.int64)
            size = self._reader.numbers.as_scalar(count)
            made = self._reader.call(_aten.repeat.default, numbers.content, [size])
            return DynamicItems(made, of_numbers=True)
        return self._grown(times, lambda target, _: self.extend(target, items))

    def reversed(self, items: ListItems) -> ListItems:
        if isinstance(items, tuple):
            return items[::-1]
        if isinstance(items, DynamicRows):
            return _of_columns(items, self.reversed)
        content = items.content
        if items.of_numbers:
            return DynamicItems(self._reader.call(_aten.flip.default, content, [0]), True)
        if items.is_sequence:
            raise ScriptRefusal(
                "a list of dynamic length, of tensors of different shapes, is reversed",
                "a loop over the indices of its items",
            )
        made = self._reader.emit_typed(
            sequences.ITEMS_REVERSE, [content], content.dtype, content.shape
        )
        return DynamicItems(made, of_numbers=False)


def _dynamic(items: ListItems) -> Dynamic:
    assert not isinstance(items, tuple)
    return items


def _of_columns(items: DynamicRows, change: Callable[[ListItems], ListItems]) -> DynamicRows:
    return DynamicRows(tuple(_dynamic(change(column)) for column in items.columns))


def _common(items: Dynamic, item: Argument) -> DynamicPattern:
    """The pattern of lists that can hold the items of a list and one more."""
    here = dynamic_pattern(items, is_any_known)
    try:
        return join_dynamic(here, as_dynamic(state_pattern((item,), is_any_known), like=here))
    except CannotJoin as reason:
        raise ScriptRefusal(
            f"a list of dynamic length holds different types: {reason}", reason.hint
        ) from reason


def _check_index(items: ListItems, index: Argument) -> None:
    length = known_length(items)
    if length == 0 and (isinstance(items, tuple) or isinstance(index, int)):
        raise ModelRaises("list index out of range")
    if length is not None and isinstance(index, int) and not -length <= index < length:
        raise ScriptRefusal(f"list index {index} of a list of {length}")
