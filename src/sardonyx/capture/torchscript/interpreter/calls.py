"""Operators that TorchScript alone has: on lists, tuples, strings and optionals."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.torchscript.containers.list_contents import is_list_of_numbers
from sardonyx.capture.torchscript.errors import NotHere, ScriptRefusal, runtime_string
from sardonyx.capture.torchscript.interpreter.dict_calls import DictCalls
from sardonyx.capture.torchscript.interpreter.number_calls import NumberCalls
from sardonyx.capture.torchscript.types.values import (
    DynamicItems,
    ListItems,
    MaybeNone,
    Mutable,
    RuntimeString,
    ScriptDict,
    ScriptList,
    is_constant,
)

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

Search = Callable[[NumberCalls, ListItems, Argument], Argument]


class ScriptCalls:
    """Each method is one operator; the table below names them."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._heap = reader.heap
        self._lists = reader.lists
        self._numbers = reader.numbers
        self._number_calls = NumberCalls(reader)
        self.dicts = DictCalls(reader)

    def call(self, kind: str, arguments: list[Argument]) -> Argument:
        """Raises NotHere for a call of tensors, or of known values."""
        if arguments and isinstance(arguments[0], ScriptDict) and kind not in _OF_ANY_TYPE:
            return self.dicts.call(kind, *arguments)
        operator = _CALLS.get(kind)
        if operator is None:
            return self._number_calls.call(kind, arguments)
        return operator(self, *arguments)

    # -- lists -----------------------------------------------------------------------------------

    def append(self, target: Argument, item: Argument) -> Argument:
        self._lists.insert(_list(target), None, item)
        return target

    def extend(self, target: Argument, other: Argument, *rest: Argument) -> Argument:
        self._lists.extend(_list(target), _list(other).state)
        return target

    def pop(self, target: Argument, position: Argument = -1) -> Argument:
        found = self._lists.at(_list(target).state, position)
        self._lists.erase(_list(target), position)
        return found

    def add(self, left: Argument, right: Argument, *rest: Argument) -> Argument:
        if isinstance(left, RuntimeString) or isinstance(right, RuntimeString):
            return RuntimeString(_made_of((left, right)))
        if isinstance(left, ScriptList) and isinstance(right, ScriptList):
            return self._lists.new(self._lists.joined(left.state, right.state))
        raise NotHere

    def multiply(self, left: Argument, right: Argument, *rest: Argument) -> Argument:
        if isinstance(right, ScriptList):
            left, right = right, left
        return self._lists.new(self._lists.repeated(_list(left).state, right))

    def multiply_in_place(self, target: Argument, times: Argument, *rest: Argument) -> Argument:
        self._heap.set(target, self._lists.repeated(_list(target).state, times))
        return target

    def sort(self, target: Argument, reverse: Argument = False, *rest: Argument) -> None:
        items = _numbers(target)
        if is_constant(target) and isinstance(items, tuple):
            self._heap.set(target, tuple(sorted(items, reverse=reverse)))
        else:
            self._heap.set(target, self._number_calls.ordered(items, reverse))

    def sorted(self, target: Argument, *rest: Argument) -> Argument:
        items = _numbers(target)
        if is_constant(target):
            raise NotHere
        return self._lists.new(self._number_calls.ordered(items))

    def remove(self, target: Argument, item: Argument) -> None:
        if is_constant(target) and is_constant(item):
            held = list(_list(target).state)
            held.remove(item)
            self._heap.set(target, tuple(held))
        else:
            self._lists.erase(target, self.search(NumberCalls.index, target, item))

    def search(self, search: Search, target: Argument, item: Argument) -> Argument:
        _check_is_known(item)
        items = _list(target).state
        if isinstance(items, tuple):
            for held in items:
                _check_is_known(held)
        if is_constant(target) and is_constant(item):
            raise NotHere
        return search(self._number_calls, _numbers(target), item)

    def set_item(self, target: Argument, index: Argument, item: Argument) -> Argument:
        self._lists.set(_list(target), index, item)
        return target

    def tuple_index(self, items: Argument, index: Argument) -> Argument:
        return items[index] if isinstance(index, int) else self._lists.at(tuple(items), index)

    # -- optionals and strings -------------------------------------------------------------------

    def is_same(self, left: Argument, right: Argument) -> Argument:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, MaybeNone) and other is None:
                return self._numbers.compute("aten::__not__", [one.present], torch.bool)
        if left is None or right is None:
            return left is right
        if isinstance(left, Value) and isinstance(right, Value):
            return _written_tensor(left) is _written_tensor(right)
        if isinstance(left, (Enum, bool)) and isinstance(right, (Enum, bool)):
            return left is right
        raise NotHere

    def cast(self, argument: Argument, *rest: Argument) -> Argument:
        return argument.content if isinstance(argument, MaybeNone) else argument

    def text(self, argument: Argument) -> Argument:
        if isinstance(argument, (torch.device, int, str)):
            return str(argument)
        if is_constant(argument):
            raise NotHere
        return RuntimeString(_made_of((argument,)))

    def percent_format(self, template: str, *arguments: Argument) -> Argument:
        if any(isinstance(a, Mutable) or not is_constant(a) for a in arguments):
            return RuntimeString(_made_of(arguments))
        return template % (arguments[0] if isinstance(arguments[0], tuple) else arguments)

    def format(self, template: str, *arguments: Argument) -> Argument:
        if any(isinstance(a, Mutable) or not is_constant(a) for a in arguments):
            return RuntimeString(_made_of(arguments))
        return template.format(*arguments)

    def equal(self, left: Argument, right: Argument, *out: Argument) -> Argument:
        """Of two members of an enum, or lists of numbers."""
        for operand in (left, right):
            _check_is_known(operand)
        if isinstance(left, Enum) and isinstance(right, Enum):
            return left is right
        if out or not (isinstance(left, ScriptList) and isinstance(right, ScriptList)):
            raise NotHere
        one, other = left.state, right.state
        if not (is_list_of_numbers(one) and is_list_of_numbers(other)):
            raise NotHere
        if isinstance(one, tuple) and isinstance(other, tuple):
            return self._numbers.all_equal(one, other)
        held = [self._lists.as_dynamic(items) for items in (one, other)]
        tensors = [items.content for items in held if isinstance(items, DynamicItems)]
        lengths = [tensor.shape[0] for tensor in tensors]
        same = self._numbers.compute("aten::eq", lengths, torch.bool)
        return self._reader.either(
            same, partial(self._numbers.same_elements, *tensors), lambda: False
        )

    def negated(self, truth: Argument) -> Argument:
        if isinstance(truth, bool):
            return not truth
        return self._numbers.compute("aten::__not__", [truth], torch.bool)


def _copy(calls: ScriptCalls, target: Argument, *rest: Argument) -> Argument:
    return calls._lists.new(_list(target).state)


def _searching(search: Search) -> Callable[..., Argument]:
    return lambda calls, items, item, *rest: calls.search(search, items, item)


def _written_tensor(value: Value) -> Value:
    """The tensor that operators which write in place and return it were called on."""
    node = value.producer
    while node is not None and node.op._schema.is_mutable:
        value = node.arguments["self"]
        node = value.producer
    if node is not None and node.blocks:
        raise ScriptRefusal("`is` compares two tensors, and a branch or a loop chose one of them")
    return value


def _made_of(texts: tuple[Argument, ...]) -> tuple[Argument, ...]:
    return tuple(
        part
        for text in texts
        for part in (text.made_of if isinstance(text, RuntimeString) else (text,))
    )


def _check_is_known(operand: Argument) -> None:
    if isinstance(operand, RuntimeString):
        raise runtime_string()


def _list(argument: Argument) -> ScriptList:
    if not isinstance(argument, ScriptList):
        raise NotHere
    return argument


def _numbers(argument: Argument) -> ListItems:
    items: ListItems = _list(argument).state
    if not is_list_of_numbers(items) and not is_constant(argument):
        raise NotHere
    return items


_OF_ANY_TYPE = frozenset(
    {
        "aten::__is__", "aten::__isnot__", "aten::format", "aten::percentFormat", "aten::str",
        "prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional",
    }
)  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {
    "aten::append": ScriptCalls.append,
    "aten::extend": ScriptCalls.extend,
    "aten::insert": lambda calls, items, *rest: calls._lists.insert(_list(items), *rest),
    "aten::pop": ScriptCalls.pop,
    "aten::Delete": lambda calls, items, place: calls._lists.erase(_list(items), place),
    "aten::clear": lambda calls, items: calls._heap.set(_list(items), ()),
    "aten::reverse": lambda calls, items: calls._heap.set(
        items, calls._lists.reversed(_list(items).state)
    ),
    "aten::copy": _copy,
    "aten::list": _copy,
    "aten::Size": _copy,
    "aten::dict": lambda calls, *pairs: calls.dicts.from_pairs(*pairs),
    "aten::add": ScriptCalls.add,
    "aten::add_": ScriptCalls.extend,
    "aten::mul": ScriptCalls.multiply,
    "aten::mul_": ScriptCalls.multiply_in_place,
    "aten::sort": ScriptCalls.sort,
    "aten::sorted": ScriptCalls.sorted,
    "aten::index": _searching(NumberCalls.index),
    "aten::count": _searching(NumberCalls.count),
    "aten::remove": ScriptCalls.remove,
    "aten::slice": lambda calls, items, *bounds: calls._lists.new(
        calls._lists.sliced(_list(items).state, *bounds)
    ),
    "aten::__getitem__": lambda calls, items, place: calls._lists.at(_list(items).state, place),
    "aten::_set_item": ScriptCalls.set_item,
    "aten::len": lambda calls, items: calls._lists.length(_list(items).state),
    "aten::__contains__": _searching(NumberCalls.contains),
    "aten::eq": ScriptCalls.equal,
    "aten::ne": lambda calls, *operands: calls.negated(calls.equal(*operands)),
    "prim::EnumName": lambda calls, member: member.name,
    "prim::EnumValue": lambda calls, member: member.value,
    "aten::__is__": ScriptCalls.is_same,
    "aten::__isnot__": lambda calls, *operands: calls.negated(calls.is_same(*operands)),
    "aten::format": ScriptCalls.format,
    "aten::str": ScriptCalls.text,
    "aten::percentFormat": ScriptCalls.percent_format,
    "prim::unchecked_cast": ScriptCalls.cast,
    "prim::unchecked_unwrap_optional": ScriptCalls.cast,
    "aten::_unwrap_optional": ScriptCalls.cast,
    "prim::TupleIndex": ScriptCalls.tuple_index,
}
