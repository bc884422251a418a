"""Lists hold the tensors that were put into them, not copies of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from sardonyx.aten.graph import Argument, Node, TensorType, Value
from sardonyx.aten.sequences import (
    ITEMS_STACK,
    SEQUENCE,
    SEQUENCE_AT,
    SHOWS_ITEMS,
    TAKES_ITEMS,
)
from sardonyx.functionalization.alias_tracking import AliasTracker
from sardonyx.functionalization.block_results import as_it_is
from sardonyx.functionalization.conditional_aliases import BlockEnd, item_at
from sardonyx.functionalization.storage_model import Base, Place, View
from sardonyx.functionalization.view_indices import can_be_located
from sardonyx.functionalization.views import Item, Positions


@dataclass(frozen=True, slots=True)
class LocatedStack:
    """A list that a loop made of views of one piece of memory from outside."""

    value: Value
    base: Base
    is_dense: bool
    item_numbers: Value
    """Of the elements that the item of an iteration shows, in the block."""
    numbers: Value
    """Of all items, outside."""

    def settle(self, aliases: AliasTracker) -> None:
        """From here on the items are where they lie."""
        place = Place(self.base, (Positions(self.numbers, may_repeat=True),))
        number = aliases.number_of(place)
        selector = Value(f"{self.value.name}_place", TensorType(torch.int64, ()))
        aliases.views[self.value] = View(
            (place,), self.value, (-1,), selector, (number,), self.is_dense
        )


@dataclass(frozen=True, slots=True)
class ListMemory:
    """What lists and their items share memory with."""

    aliases: AliasTracker
    may_be_chosen: Callable[[Value], bool]
    is_dense: Callable[[Argument], bool]
    items: dict[Value, list[Value]] = field(default_factory=dict)
    """Of lists that are made of items."""

    def note(self, node: Node) -> None:
        """An operator on lists."""
        if node.op in (SEQUENCE, ITEMS_STACK):
            self.items[node.outputs[0]] = node.arguments["items"]
        if node.op is SEQUENCE_AT:
            self._take_item_of_sequence(node)
            return
        if node.op not in TAKES_ITEMS and node.op not in SHOWS_ITEMS:
            return
        repeats = node.op in TAKES_ITEMS and self.aliases.may_overlap(node.inputs())
        for output in node.outputs:
            (base,) = self.aliases.view_of(output).bases
            base.may_repeat, base.made_by = repeats, node
            for value in node.inputs():
                self.aliases.inherit(base, self.aliases.bases_of(value))
                self.aliases.may_share(output, value)

    def is_item_of_stack(self, node: Node) -> bool:
        """Whether a row is an item of a list whose items are known; it is noted as that then."""
        of, dim, position = node.arguments.values()
        return dim == 0 and self._take_item(node, of, position)

    def _take_item_of_sequence(self, node: Node) -> None:
        sequence, position = node.arguments.values()
        if self._take_item(node, sequence, position):
            return
        (output,) = node.outputs
        (base,) = self.aliases.view_of(sequence).bases
        link = Item(position, output.type)
        self.aliases.views[output] = View((Place(base, (link,)),), output, (base.version,))

    def _take_item(self, node: Node, of: Value, position: Argument) -> bool:
        """Of a list whose items are known, at a place that is computed."""
        items = self.items.get(of)
        (output,) = node.outputs
        if items is None or not self.may_be_chosen(output) or isinstance(position, int):
            return False
        emit = self.aliases.emit
        if not isinstance(position, Value):
            position = emit(torch.ops.aten.full.default, [], position, dtype=torch.int64)
        at = emit(torch.ops.aten.remainder.Scalar, position, len(items))
        item_at(self.aliases, output, items, at, all(map(self.is_dense, items)))
        return True

    def located_stacks(
        self, stacks: Sequence[Value], end: BlockEnd, contents: Sequence[Argument], first: int
    ) -> dict[int, LocatedStack]:
        """By their index, the lists of views of one piece of memory from outside a loop; the
        results of its block have the items from a number on. Written at the end of the block."""
        found: dict[int, LocatedStack] = {}
        for index, value in enumerate(stacks):
            view, content = end.views[first + index], contents[first + index]
            if view is None or len(view.bases) != 1 or not self.may_be_chosen(value):
                continue
            (base,) = view.bases
            if end.is_local(base) or not all(can_be_located(p.chain) for p in view.places):
                continue
            numbers = Value(f"{value.name}_positions", TensorType(torch.int64, value.shape))
            of_item = as_it_is(view).positions(base, content, self.aliases)
            is_dense = end.is_dense[first + index]
            found[index] = LocatedStack(value, base, is_dense, of_item, numbers)
        return found
