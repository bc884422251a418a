"""Branches and loops without writes: memory from outside that a block writes is one more of its
results, and a loop carries it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sardonyx.aten.control_flow import LOOP, values_read
from sardonyx.aten.graph import Argument, Block, Node, SourceLocation, Value
from sardonyx.functionalization.alias_analysis import (
    made_inside,
    unchanged_positions,
    written_from_outside,
)
from sardonyx.functionalization.alias_tracking import STALE, Base, View
from sardonyx.functionalization.functional_graph import FunctionalGraph
from sardonyx.functionalization.views import AliasError


@dataclass(frozen=True, slots=True)
class _FunctionalBlock:
    block: Block
    """Its outputs are followed by the contents of the memory it writes."""
    views: list[View | None]
    """What its outputs are views of."""
    made: set[Value]
    """What is computed inside it."""
    marked: dict[Base, SourceLocation]
    """Memory from outside that became uncertain in it, and where."""
    read: dict[Base, SourceLocation]
    """Memory that it reads, and where first."""

    @property
    def bases(self) -> list[Base | None]:
        return [None if view is None else view.base for view in self.views]

    def view_of_outside(self, index: int) -> View | None:
        view = self.views[index]
        return None if view is None or view.base.root in self.made else view


class ControlFlow:
    """Functionalizes nodes with blocks; `run` does the nodes of one."""

    def __init__(self, target: FunctionalGraph, run: Callable[[list[Node]], None]) -> None:
        self._target = target
        self._aliases = target.aliases
        self._run = run

    def add(self, node: Node) -> None:
        """Its blocks read what the values around them hold now."""
        arguments = self._target.current_arguments(node)
        inside = made_inside(node)
        # The fakes do not say which of two layouts a result has.
        self._target.fakes.uncertain_layouts.update(node.outputs)
        for block in node.blocks:
            self._target.fakes.uncertain_layouts.update(block.inputs)
        for value in values_read(node):
            if value not in inside:
                self._aliases.view_of(value)
        bases = dict.fromkeys(map(self._aliases.base_of, written_from_outside(node)))
        written = [base for base in bases if base.root not in node.outputs]
        for base in written:
            self._target.check_writable(base)
        if node.op is LOOP:
            self._loop(node, arguments, written)
        else:
            self._branch(node, arguments, written)

    # -- branches --------------------------------------------------------------------------------

    def _branch(self, node: Node, arguments: dict[str, Argument], written: list[Base]) -> None:
        sides = [self._block(block, written) for block in node.blocks]
        aliased: dict[int, View] = {}
        for index in range(len(node.outputs)):
            first, *others = (side.view_of_outside(index) for side in sides)
            if first is not None and all(v is not None and first.is_same_view(v) for v in others):
                aliased[index] = first
        kept = [index for index in range(len(node.outputs)) if index not in aliased]
        for side in sides:
            outputs = side.block.outputs
            side.block.outputs = [*(outputs[i] for i in kept), *outputs[len(node.outputs) :]]
        for index, view in aliased.items():
            output = node.outputs[index]
            self._aliases.views[output] = View(view.base, view.chain, output, STALE)
        contents = self._target.new_contents(written)
        results = [*(node.outputs[index] for index in kept), *contents]
        if results:
            blocks = [side.block for side in sides]
            self._target.nodes.append(
                Node(node.op, arguments, results, node.location, blocks=blocks)
            )
        self._note_writes(sides, written, contents)
        bases = list(map(self._aliases.base_of, node.outputs))
        for side in sides:
            self._aliases.relate_results(bases, kept, side.bases)

    # -- loops -----------------------------------------------------------------------------------

    def _loop(self, node: Node, arguments: dict[str, Argument], written: list[Base]) -> None:
        (block,) = node.blocks
        count = len(block.inputs) - 1
        unchanged = unchanged_positions(node)
        kept = [position for position in range(count) if position not in unchanged]
        firsts = node.arguments["carried"]
        for position in unchanged:
            self._target.alias_result(block.inputs[1 + position], firsts[position])
        body = Block(
            [block.inputs[0], *(block.inputs[1 + p] for p in kept)],
            block.nodes,
            [block.outputs[0], *(block.outputs[1 + p] for p in kept), *block.outputs[1 + count :]],
        )
        inner_contents = self._target.new_contents(written)
        stacks = [Value(value.name, value.type) for value in node.outputs[count:]]
        before = _Carried(
            [self._aliases.base_of(firsts[p]) for p in kept],
            list(map(self._aliases.base_of, stacks)),
        )
        done = self._body(body, before, made_inside(node), written, inner_contents)
        inner, carries = done.block, 1 + len(kept)
        inner.inputs = [*body.inputs, *inner_contents]
        extra = inner.outputs[len(body.outputs) :]
        stacked = inner.outputs[carries : len(body.outputs)]
        inner.outputs = [*inner.outputs[:carries], *extra, *stacked]
        carried = [*(arguments["carried"][p] for p in kept), *(base.current for base in written)]
        contents = self._target.new_contents(written)
        outputs = [*(node.outputs[p] for p in kept), *node.outputs[count:]]
        results = [*outputs[: len(kept)], *contents, *outputs[len(kept) :]]
        if results:
            given = {**arguments, "carried": carried}
            self._target.nodes.append(Node(node.op, given, results, node.location, blocks=[inner]))
        self._note_writes([done], written, contents)
        for position in unchanged:
            self._target.alias_result(node.outputs[position], firsts[position])
        ends = list(map(self._aliases.base_of, outputs))
        self._aliases.relate_results(ends[: len(kept)], range(len(kept)), before.bases)
        self._aliases.relate_results(ends, range(len(ends)), done.bases[1:])
        starts = [self._aliases.base_of(value) for value in body.inputs[1:]]
        for index, (end, stack) in enumerate(zip(ends[len(kept) :], before.stacks, strict=True)):
            end.uncertain_since = stack.uncertain_since
            end.may_repeat |= self._may_repeat(done, carries + index, starts)

    def _may_repeat(self, done: _FunctionalBlock, index: int, starts: list[Base]) -> bool:
        """Whether two iterations may append the same memory to a list, as that output."""
        item = done.bases[index]
        if item is None:
            return False
        if item in starts:
            carried_on = done.bases[1 : 1 + len(starts)]
            return any(b is not None and self._aliases.are_related(item, b) for b in carried_on)
        return item.root not in done.made

    def _body(
        self,
        body: Block,
        before: _Carried,
        inside: set[Value],
        written: list[Base],
        contents: list[Value],
    ) -> _FunctionalBlock:
        """The body, again and again until nothing new may share memory in a later iteration."""
        starts = list(map(self._aliases.base_of, body.inputs[1:]))
        self._aliases.relate_results(starts, range(len(starts)), before.bases)
        next_starts = [*starts, *before.stacks]
        while True:
            done = self._block(body, written, contents)
            inside |= done.made
            known = self._aliases.relations
            self._aliases.relate_results(
                next_starts, range(len(next_starts)), done.bases[1:], inside
            )
            if known == self._aliases.relations:
                break
        for base, location in done.marked.items():
            if base in done.read:  # the next iteration reads it after the write
                raise self._aliases.uncertain(location, done.read[base])
        return done

    # -- blocks ----------------------------------------------------------------------------------

    def _block(
        self, block: Block, written: list[Base], contents: Sequence[Value] = ()
    ) -> _FunctionalBlock:
        """A block without writes. `written` is what it may write, and returns at its end;
        `contents` is what that memory holds at its start, if not what it holds outside."""
        target, aliases = self._target, self._aliases
        outer, target.nodes = target.nodes, []
        location = aliases.location
        state = aliases.state()
        read_outside, aliases.read = aliases.read, {}
        for base, content in zip(written, contents, strict=False):
            base.current = content
            base.version += 1
        self._run(block.nodes)
        aliases.location = location
        outputs = [target.current(o) for o in block.outputs]
        outputs += [base.current for base in written]
        made = set(block.inputs)
        made.update(v for node in (*block.nodes, *target.nodes) for v in made_inside(node))
        views = [aliases.view_of(o) if isinstance(o, Value) else None for o in block.outputs]
        changed = aliases.restore(state)
        for base in changed.written:
            if base not in written and base.root not in made:
                raise AliasError(
                    f"{base.root.name} is written inside a branch or a loop: return it from there"
                )
        inner = Block(block.inputs, target.nodes, outputs)
        target.nodes = outer
        read, aliases.read = aliases.read, aliases.read | read_outside
        marked = {b: where for b, where in changed.marked.items() if b.root not in made}
        return _FunctionalBlock(inner, views, made, marked, read)

    def _note_writes(
        self, blocks: Iterable[_FunctionalBlock], written: list[Base], contents: list[Value]
    ) -> None:
        for done in blocks:
            for base, location in done.marked.items():
                base.uncertain_since = base.uncertain_since or location
        for base, content in zip(written, contents, strict=True):
            self._aliases.set_content(base, content)
            self._target.note_write(base)


class _Carried(NamedTuple):
    """What a loop starts with."""

    bases: list[Base]
    """Of what it carries from iteration to iteration."""
    stacks: list[Base]
    """For each list that it appends to: a stand-in for its memory, as later iterations may write
    what is in the list."""
