"""Operators on dicts. Keys are known while the program is read."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import sympy

from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.torchscript.errors import (
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
    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._heap = reader.heap

    def call(self, kind: str, target: ScriptDict, *arguments: Argument) -> Argument:
        """What Python does with the dict of the entries is what the operator does."""
        if kind in _NEW:
            return self._reader.wrapped(_NEW[kind](target.state))
        if kind == "aten::update":
            arguments = (arguments[0].state,)
        elif arguments:
            arguments = (self._known(arguments[0]), *arguments[1:])
        if kind not in _READS and kind not in _CHANGES:
            raise NotHere
        entries = dict(target.state)
        try:
            result = {**_READS, **_CHANGES}[kind](entries, *arguments)
        except (KeyError, StopIteration) as error:
            wanted = f"no key {arguments[0]!r}" if arguments else "no entries"
            raise ModelRaises(f"the dict has {wanted}: it has {list(entries)}") from error
        if kind in _CHANGES:
            self._heap.set(target, entries)
        return target if kind == "aten::_set_item" else result

    def new(self, pairs: Iterable[tuple[Argument, Argument]]) -> ScriptDict:
        made: ScriptDict = self._heap.new(ScriptDict({}))
        made.state = {self._known(key): item for key, item in pairs}
        return made

    def from_pairs(self, source: ScriptList | None = None, *rest: Argument) -> ScriptDict:
        """`dict(...)`"""
        pairs = () if source is None else source.state
        if not isinstance(pairs, tuple):
            raise computed_key()
        return self.new(pairs)

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


def _pop_first(entries: dict[Any, Argument]) -> Argument:
    """`popitem()`: TorchScript takes the first, Python the last."""
    key = next(iter(entries))
    return key, entries.pop(key)


_NEW: dict[str, Callable[[dict[Any, Argument]], Any]] = {
    "aten::copy": dict,
    "aten::dict": dict,
    "aten::items": lambda entries: list(entries.items()),
    "aten::keys": list,
    "aten::values": lambda entries: list(entries.values()),
}
_READS: dict[str, Callable[..., Any]] = {
    "aten::__contains__": operator.contains,
    "aten::__getitem__": operator.getitem,
    "aten::get": dict.get,
    "aten::len": len,
}
_CHANGES: dict[str, Callable[..., Any]] = {
    "aten::_set_item": operator.setitem,
    "aten::Delete": operator.delitem,
    "aten::clear": dict.clear,
    "aten::pop": dict.pop,
    "aten::popitem": _pop_first,
    "aten::setdefault": dict.setdefault,
    "aten::update": dict.update,
}
