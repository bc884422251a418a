"""Calls that copy a tensor, or return a view where a dynamic size is 1: `contiguous()`,
`reshape()`. The graph has a copy, which matters where one of the two tensors is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import sympy
import torch

from sardonyx.aten.graph import AtenGraph, Dim, Node, Value
from sardonyx.functionalization.alias_analysis import VIEWS_OR_COPIES, Classes, written_values
from sardonyx.functionalization.layout import has_no_gaps, layout_of
from sardonyx.notes import Note, guard_note


def notes_on_copies(graph: AtenGraph, larger: Collection[str] = ()) -> list[Note]:
    """Notes for a graph before functionalization; `larger` names dims that are never 1."""
    candidates = {}
    for index, node in enumerate(graph.nodes):
        if node.op._schema.name in VIEWS_OR_COPIES:
            sizes = [s for s in _shares_at_one(node) if _name(graph, s) not in larger]
            if sizes:
                candidates[index] = sizes
    if not candidates:
        return []
    notes: dict[Note, None] = {}
    classes = Classes()
    for index, node in enumerate(graph.nodes):
        if index not in candidates:
            classes.unite_results(node)
    for index, sizes in candidates.items():
        node = graph.nodes[index]
        if _is_seen(graph, node, index, classes):
            names = [_name(graph, size) for size in sizes]
            at = node.location
            note = guard_note(
                " and ".join(f"{name} != 1" for name in names),
                f"of one, {node.op._opname}() is no copy, and writes of it are seen by both",
                (at.file, at.line, at.text),
                sympy.And(*(sympy.Ne(sympy.Symbol(name), 1) for name in names)),
            )
            notes[note] = None
    return list(notes)


def _name(graph: AtenGraph, size: sympy.Symbol) -> str:
    return str(graph.symbol_names.get(size, size))


def _shares_at_one(node: Node) -> Iterator[sympy.Symbol]:
    """The sizes for which 1 makes a contiguous tensor of one that is not."""
    source = node.arguments["self"]
    order = node.arguments.get("memory_format") or torch.contiguous_format
    if not isinstance(source, Value) or source.fake is None or order != torch.contiguous_format:
        return
    layout = layout_of(source.fake)
    if has_no_gaps(*layout):
        return
    symbols = {s for size in layout[0] if isinstance(size, sympy.Expr) for s in size.free_symbols}
    for symbol in sorted(symbols, key=str):
        if _has_no_gaps_at_one(layout, symbol):
            yield symbol


def may_be_no_copy(source: torch.Tensor, noted: Collection[sympy.Symbol]) -> bool:
    """Whether such a call returns a view where a computed size is 1. The sizes of inputs, `noted`,
    have a note."""
    layout = layout_of(source)
    return any(
        isinstance(size, sympy.Expr)
        and not size.free_symbols <= set(noted)
        and _has_no_gaps_at_one(layout, size)
        for size in layout[0]
    )


def _has_no_gaps_at_one(layout: tuple[Sequence[Dim], Sequence[Dim]], size: sympy.Expr) -> bool:
    try:
        sizes, strides = (
            [d.subs(size, 1) if isinstance(d, sympy.Expr) else d for d in dims] for dims in layout
        )
    except ZeroDivisionError:  # the model does not accept a size of 1
        return False
    return has_no_gaps(sizes, strides)


def _is_seen(graph: AtenGraph, node: Node, index: int, classes: Classes) -> bool:
    """Whether one of the two is read after a write of the other."""
    sides = classes.of(node.arguments["self"]), classes.of(node.outputs[0])
    stale: set[Value] = set()
    for later in graph.nodes[index + 1 :]:
        if any(classes.of(value) in stale for value in later.inputs()):
            return True
        for value in written_values(later):
            if classes.of(value) in sides:
                stale |= {side for side in sides if side != classes.of(value)}
    return any(isinstance(value, Value) and classes.of(value) in stale for value in graph.outputs)
