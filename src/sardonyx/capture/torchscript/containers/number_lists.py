"""Searching, counting and sorting in lists of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from sardonyx.aten.graph import Argument, Value
from sardonyx.capture.torchscript.types.values import ComputedNumber, DynamicItems, ListItems

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

_aten = torch.ops.aten


class NumberLists:
    def __init__(self, reader: GraphReader) -> None:
        self._lists = reader.lists
        self._numbers = reader.numbers

    def contains(self, items: ListItems, number: Argument) -> Argument:
        if isinstance(items, tuple):
            found: Argument = False
            for held in items:
                same = self._numbers.compute("aten::eq", [held, number], torch.bool)
                found = self._numbers.compute("aten::__or__", [found, same], torch.bool)
            return found
        return ComputedNumber(self._numbers.call(_aten.any.default, self._equal(items, number)))

    def count(self, items: ListItems, number: Argument) -> Argument:
        return ComputedNumber(self._numbers.call(_aten.sum.default, self._equal(items, number)))

    def index(self, items: ListItems, number: Argument) -> Argument:
        """The first of its places; PyTorch raises where it has none."""
        equal = self._equal(items, number)
        length = equal.shape[0]
        places = self._numbers.call(_aten.arange.default, length, dtype=torch.int64)
        beyond = self._numbers.as_tensor(length, torch.int64)
        found = self._numbers.call(_aten.where.self, equal, places, beyond)
        return ComputedNumber(self._numbers.call(_aten.amin.default, found))

    def ordered(self, items: ListItems, reverse: Argument = False) -> ListItems:
        content = self._content(items)
        if content.dtype == torch.bool:
            wide = self._numbers.call(_aten._to_copy.default, content, dtype=torch.int64)
            narrow = self._numbers.call(_aten.sort.default, wide, 0, reverse)
            content = self._numbers.call(_aten._to_copy.default, narrow, dtype=torch.bool)
        else:
            content = self._numbers.call(_aten.sort.default, content, 0, reverse)
        made = DynamicItems(content, of_numbers=True)
        known = self._lists.known_items(made) if isinstance(items, tuple) else None
        return made if known is None else known

    def _equal(self, items: ListItems, number: Argument) -> Value:
        return self._numbers.call(
            _aten.eq.Tensor, self._content(items), self._numbers.as_tensor(number)
        )

    def _content(self, items: ListItems) -> Value:
        if isinstance(items, tuple):
            return self._lists.numbers_tensor(items)
        assert isinstance(items, DynamicItems)
        return items.content
