"""Dicts whose keys are numbers that are known at run time: the list of their keys and values.

The pairs are in the order in which the keys came, as Python has it. A program that reads a key
which is not there raises in PyTorch; the file does not check it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from sardonyx.aten.graph import Argument
from sardonyx.capture.torchscript.containers.number_lists import NumberLists
from sardonyx.capture.torchscript.containers.rows import HELD_CHANGED
from sardonyx.capture.torchscript.types.values import (
    ComputedNumber,
    DynamicRows,
    ListItems,
    Origin,
    ScriptDict,
    ScriptList,
    UnknownText,
    is_computed_text,
    is_number,
)
from sardonyx.errors import CaptureError

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader


class ComputedKeys:
    """What is asked of a dict whose state is a list of pairs, and how it becomes one."""

    def __init__(self, reader: GraphReader, numbers: NumberLists) -> None:
        self._reader = reader
        self._heap = reader.heap
        self._lists = reader.lists
        self._numbers = numbers

    def set(self, target: ScriptDict, key: Argument, item: Argument) -> None:
        pairs = self._pairs(target, key, item)
        if pairs is None:
            self._heap.set(target, self._as_pairs([(key, item)]))
            return
        held = pairs

        def replaced() -> Argument:
            made = self._lists.new(held)
            self._lists.set(made, self._place(held, key), (key, item))
            return made

        def added() -> Argument:
            made = self._lists.new(held)
            self._lists.insert(made, None, (key, item))
            return made

        self._heap.share(item, HELD_CHANGED)
        is_in_several = self._heap.is_in_several
        made = self._reader.either(self.contains(held, key), replaced, added)
        self._heap.is_in_several = is_in_several  # one of both puts it there
        assert isinstance(made, ScriptList)
        self._heap.set(target, made.state)

    def _pairs(self, target: ScriptDict, key: Argument, item: Argument) -> DynamicRows | None:
        """None of a dict that is empty."""
        state = target.state
        if isinstance(state, DynamicRows):
            return state
        for number in key.made_of if isinstance(key, UnknownText) else (key,):
            self._reader.blocks.ask_to_unroll(number)
        if not state:
            return None
        is_text = is_computed_text(key)
        if not all(isinstance(known, str) if is_text else is_number(known) for known in state):
            raise CaptureError(
                "a dict is changed at a key that is computed, and others are no numbers"
            )
        return self._as_pairs(list(state.items()), like=(key, item))

    def _as_pairs(self, pairs: list[Any], like: Argument = None) -> DynamicRows:
        try:
            made = self._lists.as_dynamic(tuple(pairs), like=like)
        except CaptureError as reason:
            raise CaptureError(
                f"a dict is changed at a key that is computed, and its values have no type in"
                f" common that ONNX has: {str(reason).partition(': ')[2]}"
            ) from reason
        assert isinstance(made, DynamicRows)
        return made

    def contains(self, pairs: DynamicRows, key: Argument) -> Argument:
        return self._numbers.contains(*self._as_numbers(pairs, key))

    def _place(self, pairs: DynamicRows, key: Argument) -> Argument:
        return self._numbers.index(*self._as_numbers(pairs, key))

    def _as_numbers(self, pairs: DynamicRows, key: Argument) -> tuple[ListItems, Argument]:
        keys = keys_of(pairs)
        if isinstance(keys, DynamicRows):  # strings, by their codes
            return keys.columns[0], self._reader.texts.code(key)
        return keys, key

    def at(self, target: ScriptDict, key: Argument) -> Argument:
        pairs = target.state
        place = self._place(pairs, key)
        return self._lists.at(values_of(pairs), place, Origin(target, place, pairs))

    def erase(self, target: ScriptDict, key: Argument) -> None:
        self._erase_at(target, self._place(target.state, key))

    def pop_first(self, target: ScriptDict) -> Argument:
        first = self._lists.at(target.state, 0)
        self._erase_at(target, 0)
        return first

    def _erase_at(self, target: ScriptDict, place: Argument) -> None:
        rest = self._lists.new(target.state)
        self._lists.erase(rest, place)
        self._heap.set(target, rest.state)


def keys_of(pairs: DynamicRows) -> ListItems:
    return pairs.columns[0]


def values_of(pairs: DynamicRows) -> ListItems:
    return pairs.columns[1]


def is_computed(key: Argument) -> bool:
    return isinstance(key, (ComputedNumber, sympy.Expr)) or is_computed_text(key)
