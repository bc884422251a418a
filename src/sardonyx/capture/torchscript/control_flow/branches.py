"""`prim::If` as a branch of the graph: both blocks are read, and their results joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.control_flow import BRANCH
from sardonyx.aten.graph import Argument, AtenGraph, Block, Node, SourceLocation, Value
from sardonyx.aten.schema import bind
from sardonyx.capture.torchscript.control_flow.conform import (
    NewLeaf,
    instantiate,
    instantiate_state,
)
from sardonyx.capture.torchscript.control_flow.joined_types import (
    DictOf,
    IsKnown,
    ListOf,
    OpenDims,
    Pattern,
    Same,
    TupleOf,
    join,
    pattern_of,
    state_pattern,
)
from sardonyx.capture.torchscript.errors import ModelRaises
from sardonyx.capture.torchscript.types.aliases import entangle, settled, settled_state
from sardonyx.capture.torchscript.types.values import ComputedNumber, Mutable

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

Readings = Sequence[Callable[[], list[Argument]]]
"""The two sides of a branch: where its condition is true, and where it is not."""


@dataclass(slots=True)
class BlockRead:
    """A block that was read: its results, and the states of the objects that it changed."""

    block: Block
    outputs: list[Argument]
    changes: dict[Mutable, Any]


class ScriptBranches:
    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._assumed: dict[Argument, bool] = {}
        """Conditions on sizes that the branches around what is being read decided."""

    def truth(self, condition: Argument) -> bool | None:
        known = known_truth(condition)
        is_of_sizes = known is None and isinstance(condition, sympy.Basic)
        return self._assumed.get(condition) if is_of_sizes else known

    def branch(
        self,
        condition: Argument,
        readings: Readings,
        location: SourceLocation,
        *,
        at_end: bool = False,
    ) -> list[Argument]:
        """The results of the reading that the condition chooses. `at_end`: the program returns
        them, so that they may have any rank."""
        reader = self._reader
        chosen = self.truth(condition)
        if chosen is not None:
            return readings[0 if chosen else 1]()
        is_known = known_outside(reader.graph)
        reads: list[BlockRead] = []
        outside = self._assumed
        for index, reading in enumerate(readings):
            if isinstance(condition, sympy.Basic):
                is_true = index == 0
                self._assumed = outside | {condition: is_true, sympy.Not(condition): not is_true}
            try:
                with (
                    _torch_private.without_replacements(reader.inference.mode),
                    reader.heap.frame() as changes,
                    reader.block() as block,
                ):
                    outputs = reading()
            except ModelRaises as error:
                reader.note(
                    f"the file does not check what {error.place()} checks:"
                    f" PyTorch raises {error} there"
                )
                return readings[1 - index]()
            finally:
                self._assumed = outside
            reads.append(BlockRead(block, outputs, changes))
        return self._joined(condition, reads, is_known, location, at_end)

    def _joined(
        self,
        condition: Argument,
        reads: Sequence[BlockRead],
        is_known: IsKnown,
        location: SourceLocation,
        at_end: bool,
    ) -> list[Argument]:
        first, second = reads
        joined = partial(join, any_rank=at_end)
        outputs = [
            joined(*_settled_patterns(a, b, reads, is_known))
            if at_end
            else _merged(a, b, reads, is_known)
            for a, b in zip(first.outputs, second.outputs, strict=True)
        ]
        changed = list({**first.changes, **second.changes})
        if at_end:  # only the attributes of the module outlive the program
            changed = [c for c in changed if not c.serial]
        states = [
            merged_states([r.changes.get(c, c.held) for r in reads], reads, is_known, joined)
            for c in changed
        ]
        for read in reads:
            self._set_outputs(read, outputs, dict(zip(changed, states, strict=True)))
        results: list[Value] = []
        heap, new = self._reader.heap, new_leaf(self._reader, results)
        made = [instantiate(p, new, heap.new) for p in outputs]
        before = {change: change.held for change in changed}
        for change, pattern in zip(changed, states, strict=True):
            heap.set(change, instantiate_state(pattern, new, heap.new))
        for read in reads:
            for result, side in zip(made, read.outputs, strict=True):
                entangle(result, side)
            for change in changed:
                entangle(change.held, read.changes.get(change, before[change]))
        # A branch without results is written too: its blocks may write tensors.
        truth = condition.value if isinstance(condition, ComputedNumber) else condition
        arguments = bind(BRANCH, [truth])
        blocks = [read.block for read in reads]
        self._reader.graph.nodes.append(Node(BRANCH, arguments, results, location, blocks=blocks))
        return made

    def _set_outputs(
        self, read: BlockRead, outputs: Sequence[Pattern], states: dict[Mutable, Pattern]
    ) -> None:
        conform = self._reader.conform
        with self._reader.writing_into(read.block):
            leaves = [
                leaf
                for argument, pattern in zip(read.outputs, outputs, strict=True)
                for leaf in conform.leaves(settled(argument, read.changes), pattern)
            ]
            for change, pattern in states.items():
                state = settled_state(read.changes.get(change, change.held), read.changes)
                leaves += conform.state_leaves(state, pattern)
        read.block.outputs = leaves


def new_leaf(reader: GraphReader, made: list[Value]) -> NewLeaf:
    """Appends each value that it makes to `made`; unknown dims become new symbols."""

    def new(dtype: torch.dtype, dims: OpenDims | None, is_sequence: bool) -> Value:
        made.append(reader.new_value("joined", dtype, dims, is_sequence))
        return made[-1]

    return new


def _settled_patterns(
    left: Argument, right: Argument, reads: Sequence[BlockRead], is_known: IsKnown
) -> list[Pattern]:
    return [
        pattern_of(settled(side, read.changes), is_known)
        for side, read in zip((left, right), reads, strict=True)
    ]


def merged_states(
    states: Sequence[Any],
    reads: Sequence[BlockRead],
    is_known: IsKnown,
    joined: Callable[[Pattern, Pattern], Pattern] = join,
) -> Pattern:
    """The pattern of the state of an object after either read; objects in both stay the same."""

    def each(one: Argument, other: Argument) -> Pattern:
        if one is other and isinstance(one, Mutable):
            return Same(one)
        return joined(*_settled_patterns(one, other, reads, is_known))

    left, right = states
    if isinstance(left, dict) and isinstance(right, dict) and tuple(left) == tuple(right):
        return DictOf(tuple(left), tuple(each(left[key], right[key]) for key in left))
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return ListOf(tuple(map(each, left, right)))
    pairs = zip(states, reads, strict=True)
    return joined(*(state_pattern(settled_state(s, r.changes), is_known) for s, r in pairs))


def _merged(
    left: Argument, right: Argument, reads: Sequence[BlockRead], is_known: IsKnown
) -> Pattern:
    """The pattern of a variable after two branches."""
    plain = (bool, int, float, str, type(None), torch.dtype, sympy.Basic)
    is_equal = isinstance(left, plain) and type(left) is type(right) and bool(left == right)
    if left is right or is_equal:
        return Same(left)
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        pairs = zip(left, right, strict=True)
        return TupleOf(tuple(_merged(a, b, reads, is_known) for a, b in pairs))
    return join(*_settled_patterns(left, right, reads, is_known))


def known_truth(condition: Argument) -> bool | None:
    if condition in (True, sympy.true):
        return True
    if condition in (False, sympy.false):
        return False
    return None


def known_outside(graph: AtenGraph) -> IsKnown:
    """The sizes that are known before a block is read."""
    known = set(graph.symbols)
    return lambda size: bool(size.free_symbols <= known)
