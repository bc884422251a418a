"""Operators that TorchScript alone has: of lists, dicts, tuples, strings, optionals and objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch

from sardonyx.capture.graph import Argument, Value
from sardonyx.capture.script_lists import ScriptLists, is_list_of_numbers
from sardonyx.capture.script_numbers import ScriptNumbers
from sardonyx.capture.script_values import (
    ComputedNumber,
    DynamicItems,
    Heap,
    MaybeNone,
    Mutable,
    ScriptDict,
    ScriptList,
    UnknownText,
    is_constant,
)
from sardonyx.errors import CaptureError


class NotHere(Exception):
    """The call is one of tensors, or of known values: not of this table."""


class ScriptCalls:
    """Each method is one operator, of its arguments as they are; the tables below name them."""

    def __init__(self, heap: Heap, lists: ScriptLists, numbers: ScriptNumbers) -> None:
        self._heap = heap
        self._lists = lists
        self._numbers = numbers

    def call(self, kind: str, arguments: list[Argument]) -> Argument:
        operator = _CALLS.get(kind)
        if operator is None:
            raise NotHere
        return operator(self, *arguments)

    # -- lists -----------------------------------------------------------------------------------

    def append(self, target: Argument, item: Argument) -> Argument:
        self._lists.insert(_list(target), None, item)
        return target

    def extend(self, target: Argument, other: Argument, *rest: Argument) -> Argument:
        self._lists.extend(_list(target), _list(other).state)
        return target

    def insert(self, target: Argument, position: Argument, item: Argument) -> None:
        self._lists.insert(_list(target), position, item)

    def pop(self, target: Argument, position: Argument = -1, default: Argument = None) -> Argument:
        if isinstance(target, ScriptDict):
            found = target.state.get(position, default)
            self._heap.set(target, {k: v for k, v in target.state.items() if k != position})
            return found
        found = self._lists.at(_list(target).state, position)
        self._lists.erase(_list(target), position)
        return found

    def delete(self, target: Argument, position: Argument) -> None:
        if isinstance(target, ScriptDict):
            if position not in target.state:
                raise CaptureError(f"del of the key {position!r}, which the dict does not have")
            self._heap.set(target, {k: v for k, v in target.state.items() if k != position})
        else:
            self._lists.erase(_list(target), position)

    def clear(self, target: Argument) -> None:
        self._heap.set(target, {} if isinstance(target, ScriptDict) else ())

    def reverse(self, target: Argument) -> None:
        self._heap.set(target, self._lists.reversed(_list(target).state))

    def copy(self, target: Argument, *rest: Argument) -> Argument:
        if isinstance(target, ScriptDict):
            return self._heap.new(ScriptDict(dict(target.state)))
        return self._lists.new(_list(target).state)

    def add(self, left: Argument, right: Argument, *rest: Argument) -> Argument:
        if isinstance(left, ScriptList) and isinstance(right, ScriptList):
            return self._lists.new(self._lists.joined(left.state, right.state))
        raise NotHere

    def multiply(self, left: Argument, right: Argument, *rest: Argument) -> Argument:
        if isinstance(right, ScriptList):
            left, right = right, left
        if not isinstance(left, ScriptList):
            raise NotHere
        items = left.state
        if isinstance(right, int) and isinstance(items, tuple):
            return self._lists.new(items * right)
        if not is_list_of_numbers(items):
            raise CaptureError("a list is repeated a number of times that is computed")
        numbers = self._lists.as_dynamic(items)
        times = self._numbers.as_scalar(right)
        content = self._numbers.call(torch.ops.aten.repeat.default, numbers.content, [times])
        return self._lists.new(DynamicItems(content, of_numbers=True))

    def slice(self, target: Argument, *bounds: Argument) -> Argument:
        if isinstance(target, ScriptList):
            return self._lists.new(self._lists.sliced(target.state, *bounds))
        raise NotHere

    def get_item(self, target: Argument, key: Argument) -> Argument:
        if isinstance(target, ScriptDict):
            return self._entry(target, key)
        if isinstance(target, ScriptList):
            return self._lists.at(target.state, key)
        raise NotHere

    def set_item(self, target: Argument, key: Argument, item: Argument) -> Argument:
        if isinstance(target, ScriptDict):
            if isinstance(key, (Value, ComputedNumber, sympy.Basic)):
                raise CaptureError("a dict is written at a key that is computed")
            self._heap.set(target, {**target.state, key: item})
        else:
            self._lists.set(_list(target), key, item)
        return target

    def length(self, target: Argument) -> Argument:
        if isinstance(target, ScriptList):
            return self._lists.length(target.state)
        if isinstance(target, ScriptDict):
            return len(target.state)
        if isinstance(target, Value):
            return target.shape[0]
        raise NotHere

    def contains(self, target: Argument, item: Argument) -> Argument:
        if isinstance(target, ScriptDict):
            if isinstance(item, (Value, ComputedNumber, sympy.Basic)):
                raise CaptureError("a dict is asked for a key that is computed")
            return item in target.state
        if isinstance(target, ScriptList):
            if isinstance(item, str):
                raise NotHere
            return self._lists.contains(target.state, item)
        raise NotHere

    # -- dicts -----------------------------------------------------------------------------------

    def _entry(self, target: ScriptDict, key: Argument) -> Argument:
        if isinstance(key, (Value, ComputedNumber, sympy.Basic)):
            raise CaptureError("a dict is read at a key that is computed")
        if key not in target.state:
            raise CaptureError(f"the dict has no key {key!r}: it has {list(target.state)}")
        return target.state[key]

    def get(self, target: Argument, key: Argument, default: Argument = None) -> Argument:
        return target.state.get(key, default)

    def keys(self, target: Argument) -> Argument:
        return self._lists.new(tuple(target.state))

    def values(self, target: Argument) -> Argument:
        return self._lists.new(tuple(target.state.values()))

    def items(self, target: Argument) -> Argument:
        return self._lists.new(tuple(target.state.items()))

    def update(self, target: Argument, other: Argument) -> None:
        self._heap.set(target, {**target.state, **other.state})

    def set_default(self, target: Argument, key: Argument, default: Argument) -> Argument:
        if key not in target.state:
            self._heap.set(target, {**target.state, key: default})
        return target.state[key]

    # -- optionals -------------------------------------------------------------------------------

    def is_same(self, left: Argument, right: Argument) -> Argument:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, MaybeNone) and other is None:
                return self._numbers.compute("aten::__not__", [one.present], torch.bool)
        if left is None or right is None:
            return left is right
        if isinstance(left, Value) and isinstance(right, Value):
            return _tensor_itself(left) is _tensor_itself(right)
        raise NotHere

    # -- strings ---------------------------------------------------------------------------------

    def text(self, *arguments: Argument) -> Argument:
        if all(map(is_constant, arguments)):
            raise NotHere
        return UnknownText()

    def format(self, template: str, *arguments: Argument) -> Argument:
        if any(isinstance(a, Mutable) or not is_constant(a) for a in arguments):
            return UnknownText()
        return template.format(*arguments)

    def is_other(self, left: Argument, right: Argument) -> Argument:
        same = self.is_same(left, right)
        if isinstance(same, bool):
            return not same
        return self._numbers.compute("aten::__not__", [same], torch.bool)

    def cast(self, argument: Argument, *rest: Argument) -> Argument:
        return argument.content if isinstance(argument, MaybeNone) else argument

    # -- ranges ----------------------------------------------------------------------------------

    def range_length(self, start: Argument, end: Argument, step: Argument) -> Argument:
        if all(isinstance(a, int) for a in (start, end, step)):
            return len(range(start, end, step))
        if not isinstance(step, int):
            raise CaptureError("a range has a step that is computed")
        numbers = self._numbers
        first, last = (start, end) if step > 0 else (end, start)
        span = numbers.compute("aten::sub", [last, first], torch.int64)
        if abs(step) > 1:
            span = numbers.compute("aten::add", [span, abs(step) - 1], torch.int64)
            span = numbers.compute("aten::floordiv", [span, abs(step)], torch.int64)
        if start == 0 and isinstance(span, sympy.Expr) and span.is_nonnegative:
            return span
        return numbers.compute("prim::max", [span, 0], torch.int64)

    def derive_index(self, index: Argument, start: Argument, step: Argument) -> Argument:
        moved = self._numbers.compute("aten::mul", [index, step], torch.int64)
        return self._numbers.compute("aten::add", [start, moved], torch.int64)

    # -- tuples ----------------------------------------------------------------------------------

    def tuple_index(self, items: Argument, index: Argument) -> Argument:
        if isinstance(index, int):
            return items[index]
        return self._lists.at(tuple(items), index)


def _tensor_itself(value: Value) -> Value:
    """The tensor that operators which write in place and return it were called on."""
    node = value.producer
    while node is not None and node.op._schema.is_mutable:
        value = node.arguments["self"]
        node = value.producer
    if node is not None and node.blocks:
        raise CaptureError("`is` asks whether two tensors are one, which depends on a branch")
    return value


def _list(argument: Argument) -> ScriptList:
    if not isinstance(argument, ScriptList):
        raise NotHere
    return argument


_CALLS: dict[str, Callable[..., Any]] = {
    "aten::append": ScriptCalls.append,
    "aten::extend": ScriptCalls.extend,
    "aten::insert": ScriptCalls.insert,
    "aten::pop": ScriptCalls.pop,
    "aten::Delete": ScriptCalls.delete,
    "aten::clear": ScriptCalls.clear,
    "aten::reverse": ScriptCalls.reverse,
    "aten::copy": ScriptCalls.copy,
    "aten::list": ScriptCalls.copy,
    "aten::dict": ScriptCalls.copy,
    "aten::add": ScriptCalls.add,
    "aten::add_": ScriptCalls.extend,
    "aten::mul": ScriptCalls.multiply,
    "aten::slice": ScriptCalls.slice,
    "aten::__getitem__": ScriptCalls.get_item,
    "aten::_set_item": ScriptCalls.set_item,
    "aten::len": ScriptCalls.length,
    "aten::__contains__": ScriptCalls.contains,
    "aten::get": ScriptCalls.get,
    "aten::keys": ScriptCalls.keys,
    "aten::values": ScriptCalls.values,
    "aten::items": ScriptCalls.items,
    "aten::update": ScriptCalls.update,
    "aten::setdefault": ScriptCalls.set_default,
    "aten::__is__": ScriptCalls.is_same,
    "aten::__isnot__": ScriptCalls.is_other,
    "aten::format": ScriptCalls.format,
    "aten::str": ScriptCalls.text,
    "aten::percentFormat": ScriptCalls.text,
    "prim::unchecked_cast": ScriptCalls.cast,
    "prim::unchecked_unwrap_optional": ScriptCalls.cast,
    "aten::_unwrap_optional": ScriptCalls.cast,
    "aten::__range_length": ScriptCalls.range_length,
    "aten::__derive_index": ScriptCalls.derive_index,
    "prim::TupleIndex": ScriptCalls.tuple_index,
}
