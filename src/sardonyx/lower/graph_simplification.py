"""Fewer nodes to lower: those that nothing reads are dropped, and a node whose inputs are all
constants is run once, here, in PyTorch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from operator import attrgetter

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.control_flow import map_blocks, values_read
from sardonyx.aten.graph import Argument, AtenGraph, Block, Node, Value, is_symbolic, map_values

SMALL_BYTES = 4096
"""A folded constant up to this size never counts as growing the file."""


def fold_constants(
    graph: AtenGraph, *, fold_parameters: bool, keeps: Callable[[str], bool]
) -> None:
    """Replaces nodes by their results; the values keep their identity and become constants.

    `keeps` says of which operators every call stays a node.
    """
    uses = Counter(id(value) for node in graph.nodes for value in values_read(node))
    kept_inputs = set() if fold_parameters else {id(v) for v in graph.parameters.values()}

    def folded(nodes: list[Node]) -> list[Node]:
        kept: list[Node] = []
        for node in nodes:
            is_foldable = not keeps(node.name) and _foldable(node, kept_inputs)
            results = _run(node) if is_foldable else None
            if results is None or _grows(node, results, uses):
                kept.append(node)
                continue
            for output, result in zip(node.outputs, results, strict=True):
                output.constant = result
                output.producer = None
        return kept

    graph.nodes = map_blocks(graph.nodes, folded)


def _foldable(node: Node, kept_inputs: set[int]) -> bool:
    inputs = list(node.inputs())
    if node.blocks or not all(_has_data(v) and id(v) not in kept_inputs for v in inputs):
        return False
    if not inputs and not _is_small_creation(node):
        return False
    if node.name.startswith("aten::empty"):  # what it holds is not the model's
        return False
    if node.name.startswith("quantized_decomposed::dequantize"):  # runtimes want the integers
        return False
    if torch.Tag.nondeterministic_seeded in node.op.tags:
        return False
    return not any(map(is_symbolic, node.arguments.values()))


def _has_data(value: Value) -> bool:
    return (
        value.constant is not None
        and not _torch_private.is_fake(value.constant)
        and value.constant.device.type != "meta"
    )


def _is_small_creation(node: Node) -> bool:
    if len(node.outputs) != 1:
        return False
    value = node.outputs[0]
    sizes = [d for d in value.shape if isinstance(d, int)]
    is_known = len(sizes) == len(value.shape)
    return is_known and math.prod(sizes) * value.dtype.itemsize <= SMALL_BYTES


def _run(node: Node) -> list[torch.Tensor] | None:
    arguments = {name: map_values(a, attrgetter("constant")) for name, a in node.arguments.items()}
    positional = [arguments[a.name] for a in node.op._schema.arguments if not a.kwarg_only]
    keyword = {a.name: arguments[a.name] for a in node.op._schema.arguments if a.kwarg_only}
    try:
        with torch.no_grad():
            result = node.op(*positional, **keyword)
    except (RuntimeError, LookupError, ValueError, TypeError):
        return None  # it may stand in a branch that is never taken
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    return tensors if len(tensors) == len(node.outputs) else None


def _grows(node: Node, results: list[torch.Tensor], uses: Mapping[int, int]) -> bool:
    """Whether the results need more room in the file than the inputs they alone read."""
    made = sum(r.nbytes for r in results)
    if made <= SMALL_BYTES:
        return False
    freed = sum(
        v.constant.nbytes
        for v in {id(v): v for v in node.inputs()}.values()
        if v.constant is not None and uses[id(v)] == 1
    )
    return made > freed


# -- unused nodes ----------------------------------------------------------------------------------


def remove_unused(graph: AtenGraph) -> None:
    """Drops nodes nothing reads. After functionalization no node has another effect."""
    live = _Live(graph)
    for mutation in graph.mutated:
        live.mark(mutation.final)
    live.keep_read(graph)


class _Live:
    def __init__(self, graph: AtenGraph) -> None:
        self._symbols = graph.symbols
        self._values: set[int] = set()

    def mark(self, argument: Argument) -> None:
        if isinstance(argument, Value):
            self._values.add(id(argument))
        elif isinstance(argument, list):
            for item in argument:
                self.mark(item)
        elif isinstance(argument, sympy.Basic):
            for symbol in argument.free_symbols:
                source = self._symbols.get(symbol)
                if source is not None:
                    self._values.add(id(source.value))

    def keep_read(self, block: Block) -> None:
        self.mark(block.outputs)
        kept: list[Node] = []
        for node in reversed(block.nodes):
            if any(id(o) in self._values for o in node.outputs):
                kept.append(node)
                self._mark_read(node)
        block.nodes = kept[::-1]

    def _mark_read(self, node: Node) -> None:
        for inner in node.blocks:
            self.keep_read(inner)
        for argument in node.arguments.values():
            self.mark(argument)
        for value in (*node.outputs, *(v for inner in node.blocks for v in inner.inputs)):
            for size in value.shape:
                # A symbol may be read off a value that computes nothing else.
                if isinstance(size, sympy.Basic):
                    self.mark(size)
