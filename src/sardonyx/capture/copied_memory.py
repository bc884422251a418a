"""Calls that copy a tensor, or share its memory where a dynamic size is 1: `contiguous()`,
`reshape()`. A file has one of both, which matters where one of the two tensors is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.capture.alias_classes import Classes, may_alias
from sardonyx.capture.graph import AtenGraph, Dim, Node, Value, values_in
from sardonyx.capture.location import place_text
from sardonyx.capture.pure_forms import pure_form, writes_in_secret

_COPIES_OR_NOT = frozenset(
    f"aten::{name}" for name in ("contiguous", "reshape", "reshape_as", "flatten", "ravel")
)


def notes_on_copies(graph: AtenGraph, larger: Collection[str] = ()) -> list[str]:
    """Of a graph whose writes are still to be made pure; `larger` names dims that are never 1."""
    candidates = {}
    for index, node in enumerate(graph.nodes):
        if node.op._schema.name in _COPIES_OR_NOT:
            sizes = [s for s in _shares_at_one(node) if _name(graph, s) not in larger]
            if sizes:
                candidates[index] = sizes
    if not candidates:
        return []
    notes: dict[str, None] = {}
    classes = _classes(graph.nodes, candidates)
    for index, sizes in candidates.items():
        node = graph.nodes[index]
        if _is_seen(graph, node, index, classes):
            where = " and ".join(f"{_name(graph, size)} != 1" for size in sizes)
            at = node.location
            place = place_text((at.file, at.line, at.text))
            notes[
                f"the recording holds where {where}: of one, {node.op._opname}() is no copy, and"
                f" writes of it are seen by both at {place}"
            ] = None
    return list(notes)


def _name(graph: AtenGraph, size: sympy.Symbol) -> str:
    return str(graph.symbol_names.get(size, size))


def _shares_at_one(node: Node) -> Iterator[sympy.Symbol]:
    """The sizes of which a 1 makes memory without gaps of what lies otherwise."""
    source = node.arguments["self"]
    layout = node.arguments.get("memory_format") or torch.contiguous_format
    if not isinstance(source, Value) or source.fake is None or layout != torch.contiguous_format:
        return
    sizes = [_torch_private.dim_of(d) for d in source.fake.shape]
    strides = [_torch_private.dim_of(d) for d in source.fake.stride()]
    if _is_dense(sizes, strides):
        return
    symbols = {s for size in sizes if isinstance(size, sympy.Expr) for s in size.free_symbols}
    for symbol in sorted(symbols, key=str):
        if _is_dense_at_one(sizes, strides, symbol):
            yield symbol


def may_be_no_copy(source: torch.Tensor, told: Collection[sympy.Symbol]) -> bool:
    """Whether such a call of it, which copies otherwise, does not where a computed size is 1. Of
    sizes of the inputs, the `told` ones, there is a note."""
    sizes = [_torch_private.dim_of(d) for d in source.shape]
    strides = [_torch_private.dim_of(d) for d in source.stride()]
    for size in sizes:
        if isinstance(size, sympy.Expr) and not size.free_symbols <= set(told):
            of_one = [_at_one(d, size) for d in sizes], [_at_one(d, size) for d in strides]
            if _is_dense(*of_one):
                return True
    return False


def _at_one(dim: Dim, size: sympy.Expr) -> Dim:
    return dim.subs(size, 1) if isinstance(dim, sympy.Expr) else dim


def _is_dense_at_one(sizes: Sequence[Dim], strides: Sequence[Dim], symbol: sympy.Symbol) -> bool:
    try:
        return _is_dense(_with_one(sizes, symbol), _with_one(strides, symbol))
    except ZeroDivisionError:  # the model does not take a size of 1
        return False


def _with_one(dims: Sequence[Dim], symbol: sympy.Symbol) -> list[Dim]:
    return [d.subs(symbol, 1) if isinstance(d, sympy.Expr) else d for d in dims]


def _is_dense(sizes: Sequence[Dim], strides: Sequence[Dim]) -> bool:
    dense: Dim = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != dense:
            return False
        dense = dense * size
    return True


def _classes(nodes: Sequence[Node], apart: Collection[int]) -> Classes:
    """Values that share memory, in a recording where the calls at `apart` copy."""
    classes = Classes()
    for index, node in enumerate(nodes):
        form = pure_form(node) if node.op._schema.is_mutable else None
        if form is not None:
            for result, name in form.returned.items():
                classes.unite([node.arguments[name], node.outputs[result]])
        elif index not in apart and may_alias(node):
            classes.unite([*node.inputs(), *node.outputs])
    return classes


def _is_seen(graph: AtenGraph, node: Node, index: int, classes: Classes) -> bool:
    """Whether one of the two is read after a write of the other."""
    sides = classes.of(node.arguments["self"]), classes.of(node.outputs[0])
    stale: set[Value] = set()
    for later in graph.nodes[index + 1 :]:
        if any(classes.of(value) in stale for value in later.inputs()):
            return True
        if later.op._schema.is_mutable or writes_in_secret(later):
            form = pure_form(later)
            names = later.arguments if form is None else form.written
            for value in (v for name in names for v in values_in(later.arguments[name])):
                if classes.of(value) in sides:
                    stale |= {side for side in sides if side != classes.of(value)}
    return any(isinstance(value, Value) and classes.of(value) in stale for value in graph.outputs)
