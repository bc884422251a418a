"""`prim::If` and `prim::Loop` as branches and loops of the graph.

Both blocks of an If are read, and what they leave is joined. The body of a loop is read until what
it leaves fits what it was given: dims that change become symbols, lists that grow dynamic ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.aten.control_flow import BRANCH, LOOP
from sardonyx.aten.graph import (
    Argument,
    AtenGraph,
    Block,
    Dim,
    Node,
    SourceLocation,
    Value,
)
from sardonyx.aten.schema import bind
from sardonyx.capture.torchscript.containers.rows import ITEM_CHANGED
from sardonyx.capture.torchscript.control_flow.patterns import (
    CannotJoin,
    DictOf,
    IsKnown,
    ListOf,
    NewLeaf,
    OpenDims,
    Pattern,
    Same,
    TupleOf,
    instantiate,
    instantiate_state,
    is_better_known,
    join,
    join_carried,
    join_in_loop,
    pattern_of,
    state_pattern,
    with_open_ranks,
)
from sardonyx.capture.torchscript.control_flow.stacked_appends import (
    Appended,
    is_list_in_file,
    take_appended,
)
from sardonyx.capture.torchscript.types.aliases import (
    OtherNames,
    check_copies,
    copied,
    entangle,
    other_names,
    related_names,
    settled,
    states_in,
)
from sardonyx.capture.torchscript.types.values import (
    ComputedNumber,
    DynamicItems,
    DynamicRows,
    Mutable,
    ScriptList,
    is_number,
)
from sardonyx.errors import CaptureError, format_message

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

Body = Callable[[Argument, Sequence[Argument]], list[Argument]]
"""An iteration: of its number and what is carried, whether to go on and what is carried on."""
FOREVER = 2**63 - 1
"""The count of a `while`."""
Readings = Sequence[Callable[[], list[Argument]]]
"""What a branch gives on its two sides, where its condition is true and where it is not."""
_MOST_ITERATIONS = 256
"""That a loop is unrolled to."""
_MOST_BRANCHES = 32
"""The same where each iteration may be the last."""
_MOST_READINGS = 12
"""Of the body of one loop: each joins a dim, a list or an optional at least."""


class _Endless(Exception):
    """The number of iterations is not known, or too large to write them one by one."""


class ModelRaises(Exception):
    """The program raises here, whatever its inputs are. In the first reading of a loop, what it
    reads may not be there yet."""

    def __init__(self, message: str, location: SourceLocation | None = None) -> None:
        super().__init__(message)
        self.location = location
        """None until the node is known."""

    def place(self) -> str:
        return "a place that is not known" if self.location is None else self.location.describe()


class TypesChange(CaptureError):
    """A loop leaves a variable that it carries on another type than it found it in."""


@dataclass(frozen=True, slots=True)
class Loop:
    count: Argument
    condition: Argument
    start: Sequence[Argument]
    body: Body
    location: SourceLocation

    @property
    def limit(self) -> Argument:
        """None of a `while`."""
        return None if self.count == FOREVER else self.count


class CountedLoop:
    """A loop whose count is known, while its body is read."""

    iteration: Value | None = None


class PreferUnrolled(Exception):
    """The iterations of the loop are better written out: its lists are then of known length."""

    def __init__(self, loop: CountedLoop) -> None:
        super().__init__()
        self.loop = loop


@dataclass(slots=True)
class _Read:
    """A block that was read: what it returns, and what it left in the objects it changed."""

    block: Block
    outputs: list[Argument]
    changes: dict[Mutable, Any]
    shared: list[tuple[Mutable, str]] = field(default_factory=list)
    """What it put into lists of copies."""


Join = Callable[[Pattern, Pattern], Pattern]


@dataclass(frozen=True, slots=True)
class _Joins:
    """How the two sides of a branch are joined: what objects hold, and variables."""

    of_states: Join
    of_values: Join
    at_end: bool = False


class ScriptBlocks:
    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._counted: list[CountedLoop] = []
        """Those around, from the outermost in."""
        self._open_since: list[str | None] = []
        """The places of the loops around, where they carry tensors of any rank."""

    # -- branches --------------------------------------------------------------------------------

    def branch(
        self,
        condition: Argument,
        readings: Readings,
        location: SourceLocation,
        *,
        at_end: bool = False,
        is_body: bool = False,
        of_any_rank: bool = False,
    ) -> list[Argument]:
        """What is returned by the one of two readings that the condition chooses. At the end of a
        program, where nothing reads it any more, it may be of any rank; at that of an iteration,
        dicts may have other keys. `of_any_rank`: tensors may have another number of dims on each
        side."""
        reader = self._reader
        chosen = known_truth(condition)
        if chosen is not None:
            return readings[0 if chosen else 1]()
        is_known = _known_outside(reader.graph)
        reads: list[_Read] = []
        for index, reading in enumerate(readings):
            try:
                with _torch_private.without_replacements(reader.inference.mode):
                    reads.append(self._read(reading))
            except ModelRaises as error:
                reader.note(
                    f"the file does not check what {error.place()} checks:"
                    f" PyTorch raises {error} there"
                )
                return readings[1 - index]()
        since = location.describe() if of_any_rank else None
        if is_body and self._open_since:
            since = self._open_since[-1]
        joins = _Joins(_join_at_end, _join_at_end, True) if at_end else _joins(is_body, since)
        return self._joined(condition, reads, is_known, location, joins)

    def _read(self, reading: Callable[[], list[Argument]]) -> _Read:
        heap = self._reader.heap
        count = heap.shared_count
        with heap.frame() as changes, self._reader.block() as block:
            outputs = reading()
        return _Read(block, outputs, changes, heap.unshare(count))

    def _joined(
        self,
        condition: Argument,
        reads: Sequence[_Read],
        is_known: IsKnown,
        location: SourceLocation,
        joins: _Joins,
    ) -> list[Argument]:
        first, second = reads
        outputs = [
            joins.of_values(*_settled_patterns(a, b, reads, is_known))
            if joins.at_end
            else _merged(a, b, reads, is_known, joins.of_values)
            for a, b in zip(first.outputs, second.outputs, strict=True)
        ]
        changed = list({**first.changes, **second.changes})
        if joins.at_end:  # only what the module holds is seen after it
            changed = [c for c in changed if not c.serial]
        states = [
            _merged_states(
                [r.changes.get(c, c.held) for r in reads], reads, joins.of_states, is_known
            )
            for c in changed
        ]
        heap = self._reader.heap
        count = heap.shared_count
        for read in reads:
            with self._reader.writing_into(read.block):
                leaves = [
                    leaf
                    for argument, pattern in zip(read.outputs, outputs, strict=True)
                    for leaf in self._reader.conform.leaves(
                        settled(argument, read.changes), pattern
                    )
                ]
                for change, pattern in zip(changed, states, strict=True):
                    state = _settled_state(read.changes.get(change, change.held), read)
                    leaves += self._reader.conform.state_leaves(state, pattern)
            read.shared += self._reader.heap.unshare(count)
            read.block.outputs = leaves
        results: list[Value] = []
        new = self._new_leaf(results)
        made = [instantiate(p, new, self._reader.heap.new) for p in outputs]
        before = {change: change.held for change in changed}
        for change, pattern in zip(changed, states, strict=True):
            self._reader.heap.set(change, instantiate_state(pattern, new, self._reader.heap.new))
        for read in reads:
            heap.share_again(read.shared)
            for result, side in zip(made, read.outputs, strict=True):
                entangle(result, side)
            for change in changed:
                entangle(change.held, read.changes.get(change, before[change]))
            heap.unshare(count)
        for read in reads:
            heap.share_again(read.shared)
        # Without a result, too: its blocks may write.
        truth = condition.value if isinstance(condition, ComputedNumber) else condition
        arguments = bind(BRANCH, [truth])
        blocks = [read.block for read in reads]
        self._reader.graph.nodes.append(Node(BRANCH, arguments, results, location, blocks=blocks))
        return made

    def _new_leaf(self, made: list[Value]) -> NewLeaf:
        """Makes values, notes them in `made`; unknown dims become symbols of their own."""

        def new(dtype: torch.dtype, dims: OpenDims | None, is_sequence: bool) -> Value:
            made.append(self._reader.new_value("joined", dtype, dims, is_sequence))
            return made[-1]

        return new

    # -- loops -----------------------------------------------------------------------------------

    def loop(self, loop: Loop) -> list[Argument]:
        """What is carried at the end."""
        reader, limit, is_sure = self._reader, loop.limit, known_truth(loop.condition)
        if (isinstance(limit, int) and limit <= 0) or is_sure is False:
            return list(loop.start)
        if limit == 1 and is_sure:
            return loop.body(0, loop.start)[1:]
        symbols = dict(reader.graph.symbols)
        if isinstance(limit, int) and limit <= _MOST_ITERATIONS and is_sure:
            counted = CountedLoop()
            self._counted.append(counted)
            try:
                with reader.attempt():
                    return self._rolled(loop, counted)
            except PreferUnrolled as wish:
                if wish.loop is not counted:
                    raise
                reader.graph.symbols = dict(symbols)
                results = self._unrolled_if_possible(loop)
                if results is not None:
                    return results
            except (CannotJoin, CaptureError, ModelRaises):
                pass
            finally:
                self._counted.remove(counted)
            reader.graph.symbols = dict(symbols)
        try:
            with reader.attempt():
                return self._rolled(loop)
        except ModelRaises as error:
            if is_sure and isinstance(limit, int):
                results = self._unrolled_if_possible(loop)
                if results is None:
                    raise
                return results
            reader.note(
                f"the file takes it that the loop at {loop.location.describe()} is not entered:"
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
                raise _cannot_be_carried(refusal, loop.location) from None

    def loop_of_any_rank(self, loop: Loop) -> list[Argument]:
        """The same, where tensors may have another number of dims in every iteration."""
        return self._rolled(loop, since=loop.location.describe())

    def ask_to_unroll(self, index: Argument) -> None:
        """Raises for the innermost loop of known count that computes the index."""
        if isinstance(index, ComputedNumber):
            read = _values_behind(index.value)
            for loop in reversed(self._counted):
                if loop.iteration in read:
                    raise PreferUnrolled(loop)

    def _rolled(
        self, loop: Loop, counted: CountedLoop | None = None, since: str | None = None
    ) -> list[Argument]:
        reader = self._reader
        is_known, joins = _known_outside(reader.graph), _joins(True, since)
        given, start = loop.start, [copied(a) for a in loop.start]
        patterns = [pattern_of(a, is_known) for a in start]
        carried: dict[Mutable, Pattern] = {}
        notes = len(reader.notes)
        names: OtherNames = set()
        for _ in range(_MOST_READINGS):
            del reader.notes[notes:]  # what the last reading says is so
            known_names = len(names)
            self._open_since.append(since)
            try:
                read, inputs = self._iteration(given, patterns, carried, loop, counted, names)
            finally:
                self._open_since.pop()
            again, *after = read.outputs
            joined = [
                joins.of_values(pattern, pattern_of(settled(argument, read.changes), is_known))
                for pattern, argument in zip(patterns, after, strict=True)
            ]
            objects = dict(carried)
            for changed, state in read.changes.items():
                sides = [inputs.get(changed, changed.held), state]
                reads = [_Read(read.block, [], {}), read]
                merged = _merged_states(sides, reads, joins.of_states, is_known)
                objects[changed] = joins.of_states(carried.get(changed, merged), merged)
            if joined == patterns and objects == carried and len(names) == known_names:
                break
            patterns, carried = joined, objects
        else:
            raise CannotJoin("its types change with every iteration")
        conform, heap = reader.conform, reader.heap
        every = [*patterns, *carried.values()]
        if counted is not None and any(map(is_better_known, every)):
            raise PreferUnrolled(counted)
        with self._reader.writing_into(read.block):
            groups = [
                list(conform.leaves(settled(argument, read.changes), pattern))
                for argument, pattern in zip(after, patterns, strict=True)
            ]
            groups += [
                list(
                    conform.state_leaves(
                        _settled_state(read.changes.get(changed, inputs[changed]), read), pattern
                    )
                )
                for changed, pattern in carried.items()
            ]
        goes_on = again.value if isinstance(again, ComputedNumber) else again
        again = None if goes_on is True else goes_on
        read.block.outputs = [again, *(leaf for group in groups for leaf in group)]
        states: list[Any] = [a.state if isinstance(a, ScriptList) else None for a in start]
        states += [changed.state for changed in carried]
        appended = self._take_appended(read.block, every, groups, states, is_known)
        if counted is not None and any(
            isinstance(state, tuple) and place not in appended and is_list_in_file(pattern)
            for place, (state, pattern) in enumerate(zip(states, every, strict=True))
        ):
            raise PreferUnrolled(counted)
        if counted is not None and appended and _is_of_numbers(read.block):
            raise PreferUnrolled(counted)  # known numbers, as in `list(range(1, x.dim()))`
        first = [
            leaf
            for place, (argument, pattern) in enumerate(zip(start, patterns, strict=True))
            if place not in appended
            for leaf in conform.leaves(argument, pattern)
        ]
        first += [
            leaf
            for place, (changed, pattern) in enumerate(carried.items(), len(patterns))
            if place not in appended
            for leaf in conform.state_leaves(changed.state, pattern)
        ]
        results: list[Value] = []
        new = self._new_leaf(results)
        made: list[Argument] = [
            None if place in appended else instantiate(pattern, new, heap.new)
            for place, pattern in enumerate(patterns)
        ]
        for place, (changed, pattern) in enumerate(carried.items(), len(patterns)):
            if place not in appended:
                heap.set(changed, instantiate_state(pattern, new, heap.new))
        length = self._iterations(loop) if again is None else None
        contents = {
            place: [new(item.dtype, (length, *item.shape), False) for item in found.items]
            for place, found in appended.items()
        }
        condition = loop.condition
        truth = condition.value if isinstance(condition, ComputedNumber) else condition
        count = reader.numbers.as_scalar(loop.limit) if is_number(loop.limit) else None
        arguments = bind(LOOP, [count, None if truth is True else truth, first])
        reader.graph.nodes.append(
            Node(LOOP, arguments, results, loop.location, blocks=[read.block])
        )
        objects_changed = list(carried)
        for place, found in appended.items():
            state = reader.lists.joined(states[place], found.stacked(contents[place]))
            if place < len(patterns):
                made[place] = heap.new(ScriptList(state))
            else:
                heap.set(objects_changed[place - len(patterns)], state)
        for result, *sides in zip(made, given, after, strict=True):
            for side in sides:
                entangle(result, side)
        return made

    def _iterations(self, loop: Loop) -> Dim | None:
        """How often a loop that is not left early runs; None where no expression of sizes says it.
        A count below zero is none."""
        limit = loop.limit
        if limit is None or isinstance(limit, ComputedNumber) or not known_truth(loop.condition):
            return None
        count = self._reader.numbers.compute("prim::max", [limit, 0], torch.int64)
        return None if isinstance(count, ComputedNumber) else count

    def _take_appended(
        self,
        block: Block,
        patterns: Sequence[Pattern],
        groups: Sequence[list[Value]],
        states: Sequence[Any],
        is_known: IsKnown,
    ) -> dict[int, Appended]:
        """Lists that are only appended to, by their place: what they hold is no longer carried."""
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

    def _iteration(
        self,
        start: Sequence[Argument],
        patterns: Sequence[Pattern],
        carried: dict[Mutable, Pattern],
        loop: Loop,
        counted: CountedLoop | None,
        names: OtherNames,
    ) -> tuple[_Read, dict[Mutable, Any]]:
        """Any iteration, of inputs that fit the patterns; what it found in the objects. `names`
        gains what iterations leave under several names."""
        reader = self._reader
        iteration = reader.new_value("iteration", torch.int64, ())
        if counted is not None:
            counted.iteration = iteration
        inputs = [iteration]
        new = self._new_leaf(inputs)
        found: dict[Mutable, Any] = {}
        with reader.heap.frame() as changes, reader.block() as block:
            block.inputs = inputs
            given = [instantiate(p, new, reader.heap.new) for p in patterns]
            for changed, pattern in carried.items():
                found[changed] = instantiate_state(pattern, new, reader.heap.new)
                reader.heap.set(changed, found[changed])
            for result, side in zip(given, start, strict=True):
                entangle(result, side)
            before, writes, age = states_in(given), reader.heap.writes, reader.heap.age()
            with related_names(given, names):
                outputs = loop.body(ComputedNumber(iteration), given)
                names |= other_names(given, outputs[1:], age)
            for argument, left in zip(given, outputs[1:], strict=True):
                if check_copies(before, argument, left, loop.location):
                    reader.heap.is_in_several = True
            reader.heap.note_repeated(age)
            if reader.heap.writes > writes and reader.heap.is_in_several:
                raise CaptureError(format_message(ITEM_CHANGED, [("in", loop.location.describe())]))
        changes = {c: state for c, state in changes.items() if state is not found.get(c)}
        return _Read(block, outputs, changes), found

    def _unrolled_if_possible(self, loop: Loop) -> list[Argument] | None:
        with contextlib.suppress(_Endless, CannotJoin, CaptureError), self._reader.attempt():
            return self._unrolled(loop, loop.condition, list(loop.start))
        return None

    def _unrolled(
        self, loop: Loop, goes_on: Argument, carried: list[Argument], iteration: int = 0
    ) -> list[Argument]:
        """One iteration after the other, from one on; those that may not be reached in branches."""
        while loop.limit is None or iteration < loop.limit:
            truth = known_truth(goes_on)
            if truth is False:
                break
            if iteration >= (_MOST_ITERATIONS if truth else _MOST_BRANCHES):
                raise _Endless
            if truth is None:
                readings = [partial(self._next, loop, carried, iteration), partial(list, carried)]
                return self.branch(goes_on, readings, loop.location)
            goes_on, *carried = loop.body(iteration, carried)
            iteration += 1
        return carried

    def _next(self, loop: Loop, carried: list[Argument], iteration: int) -> list[Argument]:
        goes_on, *after = loop.body(iteration, carried)
        return self._unrolled(loop, goes_on, after, iteration + 1)


def _values_behind(value: Value) -> set[Value]:
    """What a number was computed from, in its own block."""
    found: set[Value] = set()
    pending = [value]
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            pending += value.producer.inputs() if value.producer is not None else ()
    return found


def _settled_patterns(
    left: Argument, right: Argument, reads: Sequence[_Read], is_known: IsKnown
) -> list[Pattern]:
    return [
        pattern_of(settled(side, read.changes), is_known)
        for side, read in zip((left, right), reads, strict=True)
    ]


def _join_at_end(left: Pattern, right: Pattern) -> Pattern:
    return join_carried(*with_open_ranks(left, right))


def _of_any_rank(joined: Join, since: str) -> Join:
    """The same way to join, where tensors may be of any rank."""
    return lambda left, right: joined(*with_open_ranks(left, right, since))


def _joins(in_loop: bool, since: str | None) -> _Joins:
    joins = _Joins(join_in_loop, join_carried) if in_loop else _Joins(join, join)
    if since is None:
        return joins
    return _Joins(_of_any_rank(joins.of_states, since), _of_any_rank(joins.of_values, since))


def _merged_states(
    states: Sequence[Any],
    reads: Sequence[_Read],
    joined: Join,
    is_known: IsKnown,
) -> Pattern:
    """Of what an object holds; the objects in it that are the same stay so."""

    def each(one: Argument, other: Argument) -> Pattern:
        if one is other and isinstance(one, Mutable):
            return Same(one)
        return joined(*_settled_patterns(one, other, reads, is_known))

    left, right = states
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        return DictOf(tuple(left), tuple(each(left[key], right[key]) for key in left))
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return ListOf(tuple(map(each, left, right)))
    pairs = zip(states, reads, strict=True)
    return joined(*(state_pattern(_settled_state(s, r), is_known) for s, r in pairs))


def _settled_state(state: Any, read: _Read) -> Any:
    if isinstance(state, dict):
        return {key: settled(item, read.changes) for key, item in state.items()}
    return settled(state, read.changes)


def _merged(
    left: Argument,
    right: Argument,
    reads: Sequence[_Read],
    is_known: IsKnown,
    joined: Join,
) -> Pattern:
    """The pattern of a variable after two branches."""
    plain = (bool, int, float, str, type(None), torch.dtype, sympy.Basic)
    is_equal = isinstance(left, plain) and type(left) is type(right) and bool(left == right)
    if left is right or is_equal:
        return Same(left)
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        pairs = zip(left, right, strict=True)
        return TupleOf(tuple(_merged(a, b, reads, is_known, joined) for a, b in pairs))
    return joined(*_settled_patterns(left, right, reads, is_known))


def _is_of_numbers(block: Block) -> bool:
    """Whether what comes of a block is computed from numbers only."""
    outputs = [output for output in block.outputs if isinstance(output, Value)]
    return all(v.shape == () for output in outputs for v in _values_behind(output))


def known_truth(condition: Argument) -> bool | None:
    if condition in (True, sympy.true):
        return True
    if condition in (False, sympy.false):
        return False
    return None


def _known_outside(graph: AtenGraph) -> IsKnown:
    """Of a block that is not read yet."""
    known = set(graph.symbols)
    return lambda size: bool(size.free_symbols <= known)


def _cannot_be_carried(reason: CannotJoin, location: SourceLocation) -> TypesChange:
    return TypesChange(
        format_message(
            f"a loop changes the type of a variable that it carries on: {reason}",
            [("at", location.describe())],
        )
    )
