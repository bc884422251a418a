"""`prim::Loop` as a loop of the graph, or its iterations one after the other.

The body of a loop is read until its results fit its inputs: dims that change become symbols, and
lists that grow lists of dynamic length.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from sardonyx.aten.control_flow import LOOP
from sardonyx.aten.graph import Argument, Block, Dim, Node, SourceLocation, Value
from sardonyx.aten.schema import bind
from sardonyx.capture.torchscript.control_flow.branches import (
    BlockRead,
    known_outside,
    known_truth,
    merged_states,
    new_leaf,
)
from sardonyx.capture.torchscript.control_flow.conform import instantiate, instantiate_state
from sardonyx.capture.torchscript.control_flow.joined_types import (
    IsKnown,
    Pattern,
    join,
    pattern_of,
)
from sardonyx.capture.torchscript.control_flow.stacked_appends import (
    Appended,
    has_sequence,
    take_appended,
)
from sardonyx.capture.torchscript.errors import CannotJoin, ModelRaises, TypesChange
from sardonyx.capture.torchscript.types.aliases import (
    OtherNames,
    copied,
    entangle,
    other_names,
    related_names,
    settled,
    settled_state,
)
from sardonyx.capture.torchscript.types.values import (
    ComputedNumber,
    DynamicItems,
    DynamicRows,
    Mutable,
    ScriptList,
    is_number,
    reachable,
)
from sardonyx.errors import CaptureError

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

Body = Callable[[Argument, Sequence[Argument]], list[Argument]]
"""An iteration: from its number and the carried values, whether to go on and the new values."""
FOREVER = 2**63 - 1
"""The count of a `while`."""
_MOST_ITERATIONS = 256
"""That a loop is unrolled to."""
_MOST_BRANCHES = 32
"""The same where each iteration may be the last."""
_MOST_READINGS = 12
"""Of the body of one loop: each joins a dim, a list or an optional at least."""


class _Endless(Exception):
    """The number of iterations is not known, or too large to unroll."""


@dataclass(frozen=True, slots=True)
class Loop:
    count: Argument
    condition: Argument
    start: Sequence[Argument]
    body: Body
    location: SourceLocation

    @property
    def limit(self) -> Argument:
        """None for a `while`."""
        return None if self.count == FOREVER else self.count

    @property
    def is_counted(self) -> bool:
        """Whether the number of iterations is known, but for a `break`."""
        return isinstance(self.limit, int) and known_truth(self.condition) is True


class CountedLoop:
    """A loop whose count is known, while its body is read."""

    iteration: Value | None = None


class PreferUnrolled(Exception):
    """The iterations of the loop are better unrolled: its lists then have a known length."""

    def __init__(self, loop: CountedLoop) -> None:
        super().__init__()
        self.loop = loop


@dataclass(slots=True)
class _Iteration:
    """Any iteration of a loop, read from inputs that fit the patterns."""

    read: BlockRead
    found: dict[Mutable, Any]
    """The states of the changed objects at its start."""
    patterns: list[Pattern]
    objects: dict[Mutable, Pattern]

    @property
    def goes_on(self) -> Argument:
        again = self.read.outputs[0]
        again = again.value if isinstance(again, ComputedNumber) else again
        return None if again is True else again

    @property
    def after(self) -> list[Argument]:
        return self.read.outputs[1:]

    @property
    def every_pattern(self) -> list[Pattern]:
        return [*self.patterns, *self.objects.values()]


class ScriptLoops:
    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._counted: list[CountedLoop] = []
        """The loops around, from the outermost in."""

    def loop(self, loop: Loop) -> list[Argument]:
        """The carried values after the last iteration."""
        reader, limit = self._reader, loop.limit
        is_never_entered = isinstance(limit, int) and limit <= 0
        if is_never_entered or known_truth(loop.condition) is False:
            return list(loop.start)
        if limit == 1 and loop.is_counted:
            return loop.body(0, loop.start)[1:]
        symbols = dict(reader.graph.symbols)
        if loop.is_counted and limit <= _MOST_ITERATIONS:
            results = self._rolled_or_unrolled(loop)
            if results is not None:
                return results
            reader.graph.symbols = dict(symbols)
        try:
            with reader.attempt():
                return self._rolled(loop)
        except ModelRaises as error:
            if loop.is_counted:
                results = self._unrolled_if_possible(loop)
                if results is None:
                    raise
                return results
            reader.note(
                f"the file assumes that the loop at {loop.location.describe()} is not entered:"
                f" PyTorch raises {error} in it"
            )
            return list(loop.start)
        except (CannotJoin, CaptureError) as refusal:
            reader.graph.symbols = symbols
            try:
                if limit is not None and not isinstance(limit, int):
                    raise _Endless
                return self._unrolled(loop, loop.condition, list(loop.start))
            except (_Endless, CannotJoin):
                if isinstance(refusal, CaptureError):
                    raise refusal from None
                raise TypesChange(refusal, loop.location) from None

    def _rolled_or_unrolled(self, loop: Loop) -> list[Argument] | None:
        """A loop whose body may request to be unrolled; None where neither form is possible."""
        counted = CountedLoop()
        symbols = dict(self._reader.graph.symbols)
        self._counted.append(counted)
        try:
            with self._reader.attempt():
                return self._rolled(loop, counted)
        except PreferUnrolled as wish:
            if wish.loop is not counted:
                raise
            self._reader.graph.symbols = symbols
            return self._unrolled_if_possible(loop)
        except (CannotJoin, CaptureError, ModelRaises):
            return None
        finally:
            self._counted.remove(counted)

    def ask_to_unroll(self, index: Argument) -> None:
        """Raises for the innermost loop of known count that computes the index."""
        if isinstance(index, ComputedNumber):
            read = _values_behind(index.value)
            for loop in reversed(self._counted):
                if loop.iteration in read:
                    raise PreferUnrolled(loop)

    # -- a loop of the graph ---------------------------------------------------------------------

    def _rolled(self, loop: Loop, counted: CountedLoop | None = None) -> list[Argument]:
        reader = self._reader
        is_known = known_outside(reader.graph)
        start = [copied(a) for a in loop.start]
        any_one = self._fixed_point(loop, start, counted, is_known)
        groups = self._results_of(any_one)
        block = any_one.read.block
        block.outputs = [any_one.goes_on, *(leaf for group in groups for leaf in group)]
        states: list[Any] = [a.state if isinstance(a, ScriptList) else None for a in start]
        states += [changed.state for changed in any_one.objects]
        appended = self._take_appended(block, any_one.every_pattern, groups, states, is_known)
        if counted is not None and _is_better_unrolled(any_one, states, appended):
            raise PreferUnrolled(counted)
        made = self._written(loop, any_one, start, states, appended)
        for result, *sides in zip(made, loop.start, any_one.after, strict=True):
            for side in sides:
                entangle(result, side)
        for place, changed in enumerate(any_one.objects, len(made)):
            left = any_one.read.changes.get(changed, any_one.found[changed])
            for side in (states[place], left):
                entangle(changed.held, side)
        return made

    def _fixed_point(
        self,
        loop: Loop,
        start: Sequence[Argument],
        counted: CountedLoop | None,
        is_known: IsKnown,
    ) -> _Iteration:
        """The body, read until the patterns of its results are those of its inputs."""
        patterns = [pattern_of(a, is_known) for a in start]
        carried: dict[Mutable, Pattern] = {}
        notes = len(self._reader.notes)
        names: OtherNames = set()
        for _ in range(_MOST_READINGS):
            del self._reader.notes[notes:]  # only the notes of the last reading hold
            known_names = len(names)
            any_one = self._iteration(loop, patterns, carried, counted, names)
            read = any_one.read
            joined = [
                join(pattern, pattern_of(settled(argument, read.changes), is_known))
                for pattern, argument in zip(patterns, any_one.after, strict=True)
            ]
            objects = dict(carried)
            for changed, state in read.changes.items():
                sides = [any_one.found.get(changed, changed.held), state]
                reads = [BlockRead(read.block, [], {}), read]
                merged = merged_states(sides, reads, is_known)
                objects[changed] = join(carried.get(changed, merged), merged)
            if joined == patterns and objects == carried and len(names) == known_names:
                return any_one
            patterns, carried = joined, objects
        raise CannotJoin("its types change with every iteration")

    def _iteration(
        self,
        loop: Loop,
        patterns: list[Pattern],
        objects: dict[Mutable, Pattern],
        counted: CountedLoop | None,
        names: OtherNames,
    ) -> _Iteration:
        """`names` gains the objects that the iteration leaves under several names."""
        reader = self._reader
        iteration = reader.new_value("iteration", torch.int64, ())
        if counted is not None:
            counted.iteration = iteration
        inputs = [iteration]
        new = new_leaf(reader, inputs)
        found: dict[Mutable, Any] = {}
        with reader.heap.frame() as changes, reader.block() as block:
            block.inputs = inputs
            given = [instantiate(p, new, reader.heap.new) for p in patterns]
            for changed, pattern in objects.items():
                found[changed] = instantiate_state(pattern, new, reader.heap.new)
                reader.heap.set(changed, found[changed])
            for result, side in zip(given, loop.start, strict=True):
                entangle(result, side)
            age = reader.heap.age()
            with related_names(given, names):
                outputs = loop.body(ComputedNumber(iteration), given)
                names |= other_names(given, outputs[1:], age)
        changes = {c: state for c, state in changes.items() if state is not found.get(c)}
        return _Iteration(BlockRead(block, outputs, changes), found, patterns, objects)

    def _results_of(self, any_one: _Iteration) -> list[list[Value]]:
        """The leaves of each carried value, and of each object, at the end of an iteration."""
        conform, read = self._reader.conform, any_one.read
        with self._reader.writing_into(read.block):
            groups = [
                list(conform.leaves(settled(argument, read.changes), pattern))
                for argument, pattern in zip(any_one.after, any_one.patterns, strict=True)
            ]
            for changed, pattern in any_one.objects.items():
                state = read.changes.get(changed, any_one.found[changed])
                state = settled_state(state, read.changes)
                groups.append(list(conform.state_leaves(state, pattern)))
        return groups

    def _take_appended(
        self,
        block: Block,
        patterns: Sequence[Pattern],
        groups: Sequence[list[Value]],
        states: Sequence[Any],
        is_known: IsKnown,
    ) -> dict[int, Appended]:
        """Lists that are only appended to, by their place: their items are no longer carried."""
        iteration, *inputs = block.inputs
        goes_on, *_ = block.outputs
        given = []
        for group in groups:
            given.append(inputs[: len(group)])
            inputs = inputs[len(group) :]
        found: dict[int, Appended] = {}
        for place, pattern in enumerate(patterns):
            start = states[place]
            if isinstance(start, (tuple, DynamicItems, DynamicRows)):
                ends = given[place], groups[place]
                appended = take_appended(block, start, pattern, *ends, is_known)
                if appended is not None:
                    found[place] = appended
        kept = [place for place in range(len(patterns)) if place not in found]
        block.inputs = [iteration, *(value for place in kept for value in given[place])]
        block.outputs = [
            goes_on,
            *(leaf for place in kept for leaf in groups[place]),
            *(item for appended in found.values() for item in appended.items),
        ]
        return found

    def _written(
        self,
        loop: Loop,
        any_one: _Iteration,
        start: Sequence[Argument],
        states: Sequence[Any],
        appended: dict[int, Appended],
    ) -> list[Argument]:
        """The carried values after the node of the loop, which is added to the graph."""
        reader, heap = self._reader, self._reader.heap
        carried = [place not in appended for place in range(len(states))]
        first: list[Value] = []
        for argument, pattern, is_carried in zip(start, any_one.patterns, carried, strict=False):
            first += reader.conform.leaves(argument, pattern) if is_carried else ()
        objects = list(enumerate(any_one.objects.items(), len(start)))
        for place, (changed, pattern) in objects:
            first += reader.conform.state_leaves(changed.state, pattern) if carried[place] else ()
        results: list[Value] = []
        new = new_leaf(reader, results)
        made: list[Argument] = [
            instantiate(pattern, new, heap.new) if is_carried else None
            for pattern, is_carried in zip(any_one.patterns, carried, strict=False)
        ]
        for place, (changed, pattern) in objects:
            if carried[place]:
                heap.set(changed, instantiate_state(pattern, new, heap.new))
        length = self._iteration_count(loop) if any_one.goes_on is None else None
        contents = {
            place: [new(item.dtype, (length, *item.shape), False) for item in found.items]
            for place, found in appended.items()
        }
        condition = loop.condition
        truth = condition.value if isinstance(condition, ComputedNumber) else condition
        count = reader.numbers.as_scalar(loop.limit) if is_number(loop.limit) else None
        arguments = bind(LOOP, [count, None if truth is True else truth, first])
        block = any_one.read.block
        reader.graph.nodes.append(Node(LOOP, arguments, results, loop.location, blocks=[block]))
        for place, found in appended.items():
            state = reader.lists.joined(states[place], found.stacked(contents[place]))
            if place < len(made):
                made[place] = heap.new(ScriptList(state))
            else:
                _, (changed, _) = objects[place - len(made)]
                heap.set(changed, state)
        return made

    def _iteration_count(self, loop: Loop) -> Dim | None:
        """The number of iterations of a loop without `break`; None where no expression of sizes
        says it. A count below zero is none."""
        limit = loop.limit
        if limit is None or isinstance(limit, ComputedNumber) or not known_truth(loop.condition):
            return None
        count = self._reader.numbers.compute("prim::max", [limit, 0], torch.int64)
        return None if isinstance(count, ComputedNumber) else count

    # -- iterations one after the other ----------------------------------------------------------

    def _unrolled_if_possible(self, loop: Loop) -> list[Argument] | None:
        with contextlib.suppress(_Endless, CannotJoin, CaptureError), self._reader.attempt():
            return self._unrolled(loop, loop.condition, list(loop.start))
        return None

    def _unrolled(
        self, loop: Loop, goes_on: Argument, carried: list[Argument], iteration: int = 0
    ) -> list[Argument]:
        """The iterations from one on; those that may not be reached in branches."""
        while loop.limit is None or iteration < loop.limit:
            truth = known_truth(goes_on)
            if truth is False:
                break
            if iteration >= (_MOST_ITERATIONS if truth else _MOST_BRANCHES):
                raise _Endless
            if truth is None:
                readings = [partial(self._next, loop, carried, iteration), partial(list, carried)]
                return self._reader.branches.branch(goes_on, readings, loop.location)
            goes_on, *carried = loop.body(iteration, carried)
            iteration += 1
        return carried

    def _next(self, loop: Loop, carried: list[Argument], iteration: int) -> list[Argument]:
        goes_on, *after = loop.body(iteration, carried)
        return self._unrolled(loop, goes_on, after, iteration + 1)


def _is_better_unrolled(
    any_one: _Iteration, states: Sequence[Any], appended: dict[int, Appended]
) -> bool:
    """Whether a list of known length would become a sequence, or known numbers computed ones, as
    in `list(range(1, x.dim()))`."""
    pairs = enumerate(zip(states, any_one.every_pattern, strict=True))
    becomes_sequence = any(
        isinstance(state, tuple) and place not in appended and has_sequence(pattern)
        for place, (state, pattern) in pairs
    )
    return becomes_sequence or (bool(appended) and _is_of_numbers(any_one.read.block))


def _values_behind(value: Value) -> set[Value]:
    """The values that a number was computed from, in its own block."""
    return reachable([value], lambda v: () if v.producer is None else v.producer.inputs())


def _is_of_numbers(block: Block) -> bool:
    """Whether the results of a block are computed from numbers only."""
    outputs = [output for output in block.outputs if isinstance(output, Value)]
    return all(v.shape == () for output in outputs for v in _values_behind(output))
