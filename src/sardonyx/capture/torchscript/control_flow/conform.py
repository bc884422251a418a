"""Values made from patterns, and values taken apart into the leaves of a pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.torchscript.control_flow.joined_types import (
    DictOf,
    DynamicListOf,
    DynamicRowsOf,
    ListOf,
    Maybe,
    Nothing,
    NumberLeaf,
    OpenDims,
    Pattern,
    Same,
    TensorLeaf,
    TupleOf,
)
from sardonyx.capture.torchscript.types.values import (
    UNINITIALIZED,
    ComputedNumber,
    DynamicItems,
    DynamicRows,
    MaybeNone,
    ScriptDict,
    ScriptInstance,
    ScriptList,
    Uninitialized,
    columns_of,
)

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

NewLeaf = Callable[[torch.dtype, OpenDims | None, bool], Value]
"""Makes the tensor, or the sequence (if the last argument says so), of a leaf."""


def instantiate(pattern: Pattern, new: NewLeaf, keep: Callable[[Any], Any]) -> Argument:
    """A value that fits the pattern, its leaves made by `new`; `keep` registers mutable objects."""
    if isinstance(pattern, Same):
        return pattern.argument
    if isinstance(pattern, Nothing):
        return Uninitialized()
    if isinstance(pattern, TensorLeaf):
        return new(pattern.dtype, pattern.dims, False)
    if isinstance(pattern, NumberLeaf):
        return ComputedNumber(new(pattern.dtype, (), False))
    if isinstance(pattern, Maybe):
        present = ComputedNumber(new(torch.bool, (), False))
        return MaybeNone(present, instantiate(pattern.content, new, keep))
    if isinstance(pattern, TupleOf):
        return tuple(instantiate(p, new, keep) for p in pattern.items)
    state = instantiate_state(pattern, new, keep)
    if isinstance(pattern, DictOf) and pattern.class_name:
        return keep(ScriptInstance(pattern.class_name, state))
    return keep(ScriptDict(state) if isinstance(pattern, DictOf) else ScriptList(state))


def instantiate_state(pattern: Pattern, new: NewLeaf, keep: Callable[[Any], Any]) -> Any:
    if isinstance(pattern, DynamicRowsOf):
        return DynamicRows(tuple(instantiate_state(c, new, keep) for c in pattern.columns))
    if isinstance(pattern, DynamicListOf):
        dims = pattern.dims if pattern.is_sequence else (pattern.length, *pattern.dims)
        return DynamicItems(new(pattern.dtype, dims, pattern.is_sequence), pattern.of_numbers)
    if isinstance(pattern, DictOf):
        items = (instantiate(p, new, keep) for p in pattern.items)
        return dict(zip(pattern.keys, items, strict=True))
    assert isinstance(pattern, ListOf)
    return tuple(instantiate(p, new, keep) for p in pattern.items)


class Conform:
    """Takes a value apart into the leaves of a pattern that it fits."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader

    def leaves(self, argument: Argument, pattern: Pattern) -> Iterator[Value]:
        """A value that is not set has leaves that nothing reads."""
        reader, is_missing = self._reader, isinstance(argument, Uninitialized)
        if isinstance(pattern, (Same, Nothing)):
            return
        if isinstance(pattern, TensorLeaf):
            yield reader.filler(pattern) if is_missing else argument
        elif isinstance(pattern, NumberLeaf):
            yield reader.numbers.as_tensor(0 if is_missing else argument, pattern.dtype)
        elif isinstance(pattern, Maybe):
            present: Argument = argument is not None and not is_missing
            if isinstance(argument, MaybeNone):
                present, argument = argument.present, argument.content
            yield reader.numbers.as_tensor(present, torch.bool)
            yield from self.leaves(UNINITIALIZED if argument is None else argument, pattern.content)
        elif isinstance(pattern, TupleOf):
            yield from self._each(argument, pattern.items)
        else:
            yield from self.state_leaves(argument if is_missing else argument.state, pattern)

    def state_leaves(self, state: Any, pattern: Pattern) -> Iterator[Value]:
        is_missing = isinstance(state, Uninitialized)
        if isinstance(pattern, DynamicListOf) and is_missing and not pattern.is_sequence:
            yield self._reader.filler(TensorLeaf(pattern.dtype, (pattern.length, *pattern.dims)))
        elif isinstance(pattern, DynamicListOf):
            yield self._reader.lists.dynamic_content(() if is_missing else state, pattern)
        elif isinstance(pattern, DynamicRowsOf):
            columns = (state,) * len(pattern.columns)
            if not is_missing:
                columns = tuple(columns_of(state, len(pattern.columns)))
            for part, column in zip(columns, pattern.columns, strict=True):
                yield from self.state_leaves(part, column)
        elif isinstance(pattern, DictOf):
            if not is_missing:
                state = tuple(state[key] for key in pattern.keys)
            yield from self._each(state, pattern.items)
        elif isinstance(pattern, ListOf):
            yield from self._each(state, pattern.items)

    def _each(self, items: Any, patterns: Sequence[Pattern]) -> Iterator[Value]:
        if isinstance(items, Uninitialized):
            items = (items,) * len(patterns)
        for item, pattern in zip(items, patterns, strict=True):
            yield from self.leaves(item, pattern)
