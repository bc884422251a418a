"""Conditions on dynamic sizes that a recorded model turns on: where verification has to look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import sympy

from sardonyx import _torch_private
from sardonyx._torch_private import SizeCondition
from sardonyx.aten.control_flow import all_nodes
from sardonyx.aten.graph import AtenGraph
from sardonyx.aten.pytree import leaves_in
from sardonyx.aten.type_inference import TypeInference
from sardonyx.capture.symbolic_shapes.guards import at_sizes


def guard_conditions(
    graph: AtenGraph, granted: Sequence[SizeCondition] | None = None
) -> tuple[sympy.Basic, ...]:
    """In the caller's names of dims: what the recording assumes, what it computes by, and
    where the larger or the smaller of two sizes is another one. Of what operators check of their
    inputs, equations are left out: other sizes are no inputs."""
    names = {
        symbol: sympy.Symbol(name, integer=True, nonnegative=True)
        for symbol, name in graph.symbol_names.items()
    }
    found: dict[sympy.Basic, None] = {}
    if granted is None:
        granted = _torch_private.guards(TypeInference.for_graph(graph).mode)
    assumed = (
        c.expression for c in granted if c.in_model_code or not isinstance(c.expression, sympy.Eq)
    )
    for condition in (*assumed, *_computed(graph)):
        if condition.free_symbols and condition.free_symbols <= names.keys():
            named = condition.xreplace(names)
            if named.free_symbols:
                found[named] = None
    return tuple(found)


def _computed(graph: AtenGraph) -> Iterator[sympy.Basic]:
    found: dict[sympy.Basic, None] = {}
    for node in all_nodes(graph.nodes):
        shapes = [value.shape for value in node.outputs if value.has_shape]
        leaves = leaves_in([*node.arguments.values(), *shapes])
        found |= dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, sympy.Basic))
    for expression in found:
        yield from _torch_private.breakpoint_conditions(expression)


_MOST_STEPS = 32


def sizes_across(
    condition: sympy.Basic, sizes: Mapping[str, int], most: int
) -> Iterator[dict[str, int]]:
    """The nearest smaller and larger sizes, from 1 to `most`, at which a condition is answered
    otherwise than at `sizes`, one dim changed at a time."""
    symbols = {s: sizes[s.name] for s in condition.free_symbols if s.name in sizes}
    if symbols.keys() != condition.free_symbols:
        return
    answer = at_sizes(condition, symbols)
    for symbol, size in symbols.items():
        for tried in (range(size - 1, 0, -1), range(size + 1, most + 1)):
            for other in tried[:_MOST_STEPS]:
                found = at_sizes(condition, {**symbols, symbol: other})
                if found is not None and found != answer:
                    yield {**sizes, symbol.name: other}
                    break
