"""Which call of which module each node of a graph belongs to."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import TypeAlias

import onnx_ir as ir

from sardonyx.aten.module_calls import common_start
from sardonyx.lower.onnx_types.subgraphs import subgraphs_of
from sardonyx.lower.provenance import CALLS_KEY

Stack: TypeAlias = tuple[str, ...]
"""The calls that run, outermost first: `("@0", "layers.0@0", "layers.0.linear@0")`."""

_SIZE_OPERATORS = frozenset(
    {
        "Add", "Cast", "Concat", "Constant", "Div", "Equal", "Gather", "Max", "Min", "Mod", "Mul",
        "Neg", "ReduceProd", "Reshape", "Shape", "Size", "Slice", "Squeeze", "Sub", "Unsqueeze",
        "Where",
    }
)  # fmt: skip


def module_path(call: str) -> str:
    return call.rpartition("@")[0]


def read_call_stacks(
    graph: ir.Graph, is_wanted: Callable[[str], bool], running: Stack = ()
) -> dict[ir.Node, Stack]:
    """The stack of each node, of those in bodies too, with the calls of wanted modules alone."""
    stacks: dict[ir.Node, Stack] = {}
    for node in graph:
        calls = node.metadata_props.pop(CALLS_KEY, "").split("\n")
        stack = tuple(call for call in calls if call and is_wanted(module_path(call)))
        # A body runs inside the call that its branch or loop runs in.
        stacks[node] = stack if stack[: len(running)] == running else running
        for body in subgraphs_of(node):
            stacks.update(read_call_stacks(body, is_wanted, stacks[node]))
    return stacks


def share_sizes(graph: ir.Graph, stacks: MutableMapping[ir.Node, Stack], owner: Stack = ()) -> None:
    """Sizes are computed where they are read first, and read elsewhere too: they belong to the call
    that all their readers run in, as far as what they are read off is known there."""
    outermost: dict[ir.Node, Stack] = {}
    for node in graph:
        for body in subgraphs_of(node):
            share_sizes(body, stacks, stacks[node])
        if _is_size(node, outermost):
            known = owner
            for value in node.inputs:
                producer = None if value is None else value.producer()
                if producer is not None and producer in stacks:
                    needed = outermost.get(producer, stacks[producer])
                    shared = common_start(needed, stacks[node])
                    known = max(known, shared, key=len)
            outermost[node] = known
    for node in reversed(tuple(outermost)):
        shared = stacks[node]
        for use in (use for output in node.outputs for use in output.uses()):
            shared = common_start(shared, stacks.get(use.node, shared))
        stacks[node] = max(shared, outermost[node], key=len)


def _is_size(node: ir.Node, sizes: MutableMapping[ir.Node, Stack]) -> bool:
    if node.domain != "" or node.op_type not in _SIZE_OPERATORS:
        return False
    if node.op_type in ("Shape", "Size"):
        return True
    small = all(output.shape is not None and len(output.shape) <= 1 for output in node.outputs)
    return small and all(
        value is None or value.is_initializer() or value.producer() in sizes
        for value in node.inputs
    )
