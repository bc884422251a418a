"""Lists that a loop only appends to: the items are stacked by the loop itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sympy
import torch

from sardonyx.aten import sequences
from sardonyx.aten.control_flow import values_read
from sardonyx.aten.graph import Argument, Block, Node, Value
from sardonyx.aten.pytree import leaves_in
from sardonyx.capture.torchscript.control_flow.joined_types import (
    DynamicListOf,
    DynamicPattern,
    DynamicRowsOf,
    Pattern,
)
from sardonyx.capture.torchscript.types.values import (
    Dynamic,
    DynamicItems,
    DynamicRows,
    ListItems,
    columns_of,
)

_aten = torch.ops.aten


@dataclass(slots=True)
class Appended:
    """The item that one iteration appends to a list, or the elements of a tuple."""

    pattern: DynamicPattern
    items: list[Value]

    def stacked(self, contents: Sequence[Value]) -> Dynamic:
        """The list of the items that all iterations appended, from their stacked tensors."""
        return _filled(self.pattern, iter(contents))


def _filled(pattern: DynamicPattern, contents: Iterator[Value]) -> Dynamic:
    if isinstance(pattern, DynamicRowsOf):
        return DynamicRows(tuple(_filled(c, contents) for c in pattern.columns))
    return DynamicItems(next(contents), pattern.of_numbers)


def has_sequence(pattern: Pattern) -> bool:
    """Whether a list of the pattern is a sequence, or has one for an element of its tuples."""
    if isinstance(pattern, DynamicRowsOf):
        return any(map(has_sequence, pattern.columns))
    return isinstance(pattern, DynamicListOf) and pattern.is_sequence


def take_appended(
    block: Block,
    start: ListItems,
    pattern: Pattern,
    given: Sequence[Value],
    returned: Sequence[Value],
    is_known: Callable[[sympy.Basic], bool],
) -> Appended | None:
    """The items that a loop appends to a list, if its body does nothing else with the list: `start`
    is what it holds before the loop, `given` the list at the start of an iteration, `returned` at
    its end."""
    if not isinstance(pattern, (DynamicListOf, DynamicRowsOf)) or not given:
        return None
    found = [_append(block, *ends) for ends in zip(given, returned, strict=True)]
    appends = [append for append in found if append is not None]
    if len(appends) < len(given) or not all(_is_stackable(a, is_known) for a in appends):
        return None
    if not _joins(pattern, start, iter(appends)):
        return None
    if _is_read(block, [*given, *returned], [append.node for append in appends]):
        return None
    block.nodes = [n for n in block.nodes if all(n is not append.node for append in appends)]
    return Appended(pattern, [append.item for append in appends])


def _joins(pattern: DynamicPattern, start: ListItems, appends: Iterator[_Append]) -> bool:
    """Whether the items before the loop can be stacked with those that are appended."""
    if isinstance(pattern, DynamicRowsOf):
        columns = columns_of(start, len(pattern.columns))
        pairs = zip(pattern.columns, columns, strict=True)
        # A list, not a generator: each call consumes its appends.
        found = [_joins(p, column, appends) for p, column in pairs]
        return all(found)
    item = next(appends).item
    if isinstance(start, DynamicItems):
        return not start.is_sequence and start.content.shape[1:] == item.shape
    assert isinstance(start, tuple)
    return pattern.of_numbers or all(
        held.has_shape and held.shape == item.shape and held.dtype == item.dtype for held in start
    )


@dataclass(slots=True)
class _Append:
    node: Node
    item: Value


def _append(block: Block, given: Value, returned: Value) -> _Append | None:
    node = returned.producer
    if node is None or not any(node is n for n in block.nodes):
        return None
    arguments = node.arguments
    if node.op is sequences.SEQUENCE_INSERT:
        if arguments["sequence"] is given and arguments["position"] is None:
            return _Append(node, arguments["item"])
        return None
    name = {sequences.ITEMS_JOIN: "stacked", _aten.cat.default: "tensors"}.get(node.op)
    parts = [] if name is None else arguments[name]
    if len(parts) != 2 or parts[0] is not given or parts[1].producer is None:
        return None
    one = parts[1].producer
    if one.op is sequences.ITEMS_STACK and len(one.arguments["items"]) == 1:
        return _Append(node, one.arguments["items"][0])
    if one.op is _aten.reshape.default and not one.arguments["self"].shape:
        return _Append(node, one.arguments["self"])
    return None


def _is_stackable(append: _Append, is_known: Callable[[sympy.Basic], bool]) -> bool:
    item = append.item
    return (
        item.has_shape
        and not item.dtype.is_complex
        and all(isinstance(d, int) or is_known(d) for d in item.shape)
    )


def _is_read(block: Block, lists: Sequence[Value], appends: Sequence[Node]) -> bool:
    """Whether anything but the appends reads the lists or their lengths."""
    values = set(lists)
    lengths = {s for v in lists if v.has_shape for s in _symbols(v.shape[0])}
    for node in block.nodes:
        if any(node is append for append in appends):
            continue
        if any(value in values for value in values_read(node)) or lengths & _sizes_read(node):
            return True
    if any(lengths & set(_symbols(output)) for output in block.outputs):
        return True
    returned = [output for output in block.outputs if isinstance(output, Value)]
    return sum(output in values for output in returned) > len(appends)


def _sizes_read(node: Node) -> set[sympy.Symbol]:
    read = {s for argument in node.arguments.values() for s in _symbols(argument)}
    for block in node.blocks:
        for inner in block.nodes:
            read |= _sizes_read(inner)
        read |= {s for output in block.outputs for s in _symbols(output)}
    return read


def _symbols(argument: Argument) -> Iterator[sympy.Symbol]:
    for leaf in leaves_in(argument):
        if isinstance(leaf, sympy.Basic):
            yield from leaf.free_symbols
