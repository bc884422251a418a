"""Operators on dicts. Keys are known while the program is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import sympy

from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.torchscript.refusals import (
    ModelRaises,
    NotHere,
    computed_key,
    runtime_string,
)
from sardonyx.capture.torchscript.types.values import (
    ComputedNumber,
    RuntimeString,
    ScriptDict,
    ScriptList,
)

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader


class DictCalls:
    """Each method is one operator; the table below names them."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._heap = reader.heap
        self._lists = reader.lists

    def call(self, kind: str, target: ScriptDict, *arguments: Argument) -> Argument:
        operator = _DICT_CALLS.get(kind)
        if operator is None:
            raise NotHere
        return operator(self, target, *arguments)

    def new(self, pairs: Iterable[tuple[Argument, Argument]]) -> ScriptDict:
        made: ScriptDict = self._heap.new(ScriptDict({}))
        for key, item in pairs:
            self.set_item(made, key, item)
        return made

    def from_pairs(self, source: ScriptList | None = None, *rest: Argument) -> ScriptDict:
        """`dict(...)`"""
        pairs = () if source is None else source.state
        if not isinstance(pairs, tuple):
            raise computed_key()
        return self.new(pairs)

    def copy(self, target: ScriptDict, *rest: Argument) -> Argument:
        return self._heap.new(ScriptDict(dict(target.state)))

    def clear(self, target: ScriptDict) -> None:
        self._heap.set(target, {})

    def delete(self, target: ScriptDict, key: Argument) -> None:
        self._check_has(target, key)
        self._heap.set(target, {k: v for k, v in target.state.items() if k != key})

    def pop(self, target: ScriptDict, key: Argument, *default: Argument) -> Argument:
        if default and self._known(key) not in target.state:
            return default[0]
        found = self.get_item(target, key)
        self.delete(target, key)
        return found

    def pop_item(self, target: ScriptDict) -> Argument:
        """TorchScript takes the first."""
        if not target.state:
            raise ModelRaises("popitem() of a dict that is empty")
        key = next(iter(target.state))
        return key, self.pop(target, key)

    def get_item(self, target: ScriptDict, key: Argument) -> Argument:
        self._check_has(target, key)
        return target.state[key]

    def get(self, target: ScriptDict, key: Argument, default: Argument = None) -> Argument:
        return target.state.get(self._known(key), default)

    def set_item(self, target: ScriptDict, key: Argument, item: Argument) -> Argument:
        self._heap.set(target, {**target.state, self._known(key): item})
        return target

    def set_default(self, target: ScriptDict, key: Argument, default: Argument) -> Argument:
        if self._known(key) not in target.state:
            self.set_item(target, key, default)
        return target.state[key]

    def update(self, target: ScriptDict, other: ScriptDict) -> None:
        self._heap.set(target, {**target.state, **other.state})

    def contains(self, target: ScriptDict, key: Argument) -> Argument:
        return self._known(key) in target.state

    def length(self, target: ScriptDict) -> Argument:
        return len(target.state)

    def keys(self, target: ScriptDict) -> Argument:
        return self._lists.new(target.state)

    def values(self, target: ScriptDict) -> Argument:
        return self._lists.new(target.state.values())

    def items(self, target: ScriptDict) -> Argument:
        return self._lists.new(target.state.items())

    def _check_has(self, target: ScriptDict, key: Argument) -> None:
        if self._known(key) not in target.state:
            raise ModelRaises(f"the dict has no key {key!r}: it has {list(target.state)}")

    def _known(self, key: Argument) -> Argument:
        """In a loop of known count, the key is known in each iteration once the loop is
        unrolled."""
        for number in key.made_of if isinstance(key, RuntimeString) else (key,):
            self._reader.loops.ask_to_unroll(number)
        if isinstance(key, RuntimeString):
            raise runtime_string()
        if isinstance(key, (Value, ComputedNumber, sympy.Basic)):
            raise computed_key()
        return key


_DICT_CALLS: dict[str, Callable[..., Any]] = {
    "aten::__contains__": DictCalls.contains,
    "aten::__getitem__": DictCalls.get_item,
    "aten::_set_item": DictCalls.set_item,
    "aten::Delete": DictCalls.delete,
    "aten::clear": DictCalls.clear,
    "aten::copy": DictCalls.copy,
    "aten::dict": DictCalls.copy,
    "aten::get": DictCalls.get,
    "aten::items": DictCalls.items,
    "aten::keys": DictCalls.keys,
    "aten::len": DictCalls.length,
    "aten::pop": DictCalls.pop,
    "aten::popitem": DictCalls.pop_item,
    "aten::setdefault": DictCalls.set_default,
    "aten::update": DictCalls.update,
    "aten::values": DictCalls.values,
}
