"""What follows a place of a program, read once for each way that the program may have taken there.

A branch can leave two types, a squeeze or an argument two ranks, and a loop other types than it
found. The rest of the program is then read in each branch, where its types are known.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from sardonyx.capture.graph import Argument, AtenGraph, Dim, SourceLocation, Value
from sardonyx.capture.torchscript.any_rank import AnyRankTensors
from sardonyx.capture.torchscript.blocks import FOREVER, ScriptBlocks, TypesChange
from sardonyx.capture.torchscript.node_values import outputs as node_outputs
from sardonyx.capture.torchscript.nodes import NodeWriter
from sardonyx.capture.torchscript.numbers import ScriptNumbers
from sardonyx.capture.torchscript.patterns import CannotJoin
from sardonyx.capture.torchscript.reshaped import ReshapedTensors
from sardonyx.capture.torchscript.squeezes import OpenSqueeze, open_squeeze
from sardonyx.capture.torchscript.values import AnyRank
from sardonyx.errors import CaptureError, format_message

MOST_COPIES = 6
"""Branches, one inside the other, that each take a copy of what follows them."""


class TwoTypes(CannotJoin):
    """What a call gives has another type where an operand, by a condition, is this than where it
    is that."""

    def __init__(
        self,
        message: str,
        names: list[str],
        operand: Argument,
        condition: Argument,
        ways: list[Argument],
    ) -> None:
        super().__init__(message)
        self.names = names
        self.operand = operand
        self.condition = condition
        self.ways = ways


class BranchesDiffer(CaptureError):
    """The branches of an if leave types that cannot be joined."""


class ReadsApart(NodeWriter):
    """The ways of a reader to take what follows apart; `rest` reads it."""

    numbers: ScriptNumbers
    any_rank: AnyRankTensors
    _blocks: ScriptBlocks
    _reshaped: ReshapedTensors
    _env: dict[str, Argument]

    def __init__(self, into: AtenGraph | None = None, mode: Any = None) -> None:
        super().__init__(into, mode)
        self._copies = 0
        self._loops_apart = 0
        """Of which iterations are read one by one, as long as that leaves no more ranks than
        what follows can be read for."""
        self._sizes_of_one: dict[Dim, bool] = {}

    @abstractmethod
    def read_block(
        self,
        nodes: Sequence[Any],
        outputs: Sequence[Any],
        then: Callable[[list[Argument]], list[Argument]] | None = None,
        *,
        at_end: bool = False,
        is_body: bool = False,
    ) -> list[Argument]: ...

    @abstractmethod
    def attempt(self) -> AbstractContextManager[None]: ...

    @abstractmethod
    def location(self, node: Any) -> SourceLocation: ...

    @abstractmethod
    def inputs_of(self, node: Any) -> list[Argument]: ...

    @abstractmethod
    def set(self, node: Any, result: Argument) -> None: ...

    def _open_squeeze(self, node: Any) -> OpenSqueeze | None:
        return open_squeeze(node.kind(), self.inputs_of(node))

    def _squeezed(
        self,
        node: Any,
        squeeze: OpenSqueeze,
        rest: Callable[[], list[Argument]],
        ends: dict[str, bool],
    ) -> list[Argument]:
        """What follows is read once for each rank that the tensor may have."""
        location = self.here = self.location(node)
        if not squeeze.open:
            view = squeeze.tensor
            if squeeze.dropped:
                view = self.emit(torch.ops.aten.squeeze.dims, [view, list(squeeze.dropped)])[0]
            self._set_squeezed(node, view)
            return rest()
        *others, axis = squeeze.open
        size = squeeze.tensor.shape[axis]

        def dropped() -> list[Argument]:
            view = self.emit(torch.ops.aten.select.int, [squeeze.tensor, axis, 0])[0]
            before = tuple(a if a < axis else a - 1 for a in squeeze.dropped)
            return self._squeezed(node, OpenSqueeze(view, before, tuple(others)), rest, ends)

        def kept() -> list[Argument]:
            return self._squeezed(node, replace(squeeze, open=tuple(others)), rest, ends)

        known = self._sizes_of_one.get(size)
        if known is not None:
            return dropped() if known else kept()
        asked = {squeeze.tensor.shape[a] for a in squeeze.open} - self._sizes_of_one.keys()
        if self._copies + len(asked) > MOST_COPIES:
            if self._loops_apart:
                raise BranchesDiffer(
                    format_message(
                        "there are too many ranks that a squeeze() may leave",
                        [("at", location.describe())],
                    )
                )
            dims = (*squeeze.dropped, *squeeze.open)
            self._set_squeezed(node, self.any_rank.squeezed(squeeze.tensor, dims))
            return rest()
        condition = self.numbers.compute("aten::eq", [size, 1], torch.bool)
        readings = [
            partial(self._where_one, size, True, dropped),
            partial(self._where_one, size, False, kept),
        ]
        self._copies += 1
        try:
            return self._blocks.branch(condition, readings, location, **ends)
        except CannotJoin as reason:
            if ends["at_end"]:
                raise different_types(reason, location) from reason
            raise
        finally:
            self._copies -= 1

    def _set_squeezed(self, node: Any, view: Value | AnyRank) -> None:
        held = self._env[node.inputsAt(0).debugName()]
        if node.kind() == "aten::squeeze_" and view is not held:
            self._reshaped.check_shape_is_its_own(node, held)
            self._reshaped.reshape(held, view)
            view = held
        self.set(node, view)

    def _first_apart(
        self,
        node: Any,
        refusal: TypesChange,
        rest: Callable[[], list[Argument]],
        ends: dict[str, bool],
    ) -> list[Argument]:
        """A loop that leaves other types than it found, its first iterations read one by one: what
        follows is read once for each number of them, until the types stay. Where they never do, the
        loop carries tensors of any rank."""
        location = self.here = self.location(node)
        count, condition, *start = self.inputs_of(node)
        (block,) = node.blocks()
        symbols = dict(self.graph.symbols)

        def with_results(results: Sequence[Argument]) -> list[Argument]:
            for output, result in zip(node_outputs(node), results, strict=True):
                self._env[output.debugName()] = result
            return rest()

        def entered(
            done: int, left: Argument, goes_on: Argument, carried: Sequence[Argument]
        ) -> list[Argument]:
            if self._copies >= MOST_COPIES:
                raise refusal
            is_entered = goes_on
            if left != FOREVER:
                is_any = self.numbers.compute("aten::gt", [left, 0], torch.bool)
                is_entered = self.numbers.compute("aten::__and__", [is_any, goes_on], torch.bool)
                left = self.numbers.compute("aten::sub", [left, 1], torch.int64)

            def one_more() -> list[Argument]:
                goes_on, *after = self._iteration(block, done, carried)
                following = partial(self._iteration, block, done=done + 1)
                try:
                    with self.attempt():
                        results = self._blocks.loop(left, goes_on, after, following, location)
                except TypesChange:
                    return entered(done + 1, left, goes_on, after)
                return with_results(results)

            readings: list[Callable[[], list[Argument]]]
            readings = [one_more, partial(with_results, carried)]
            self._copies += 1
            try:
                return self._blocks.branch(is_entered, readings, location, **ends)
            finally:
                self._copies -= 1

        reason: Exception
        self._loops_apart += 1
        try:
            with self.attempt():
                return entered(0, count, condition, start)
        except (CannotJoin, TypesChange, BranchesDiffer) as error:
            reason = error
        finally:
            self._loops_apart -= 1
        self.graph.symbols = symbols
        self.here = location
        try:
            with self.attempt():
                results = self._blocks.loop_of_any_rank(
                    count, condition, start, partial(self._iteration, block), location
                )
        except (CannotJoin, TypesChange):
            if isinstance(reason, TypesChange) or (
                ends["at_end"] and isinstance(reason, CannotJoin)
            ):
                raise refusal from reason
            raise reason from None
        return with_results(results)

    def _iteration(
        self, block: Any, place: Argument, carried: Sequence[Argument], done: int = 0
    ) -> list[Argument]:
        """`done`: iterations that were read before."""
        if done:
            place = self.numbers.compute("aten::add", [place, done], torch.int64)
        for source, argument in zip(block.inputs(), (place, *carried), strict=True):
            self._env[source.debugName()] = argument
        return self.read_block(list(block.nodes()), list(block.outputs()), is_body=True)

    def _operand_apart(
        self,
        node: Any,
        choice: TwoTypes,
        again: Callable[[], list[Argument]],
        ends: dict[str, bool],
    ) -> list[Argument]:
        """A call that gives another type where an operand is this than where it is that: it and
        what follows are read once for each."""
        location = self.here = self.location(node)
        refusal = CaptureError(format_message(str(choice), [("at", location.describe())]))
        if self._copies >= MOST_COPIES:
            raise refusal from choice

        def reading(way: Argument) -> list[Argument]:
            self._env.update(dict.fromkeys(choice.names, way))
            try:
                return again()
            finally:
                self._env.update(dict.fromkeys(choice.names, choice.operand))

        self._copies += 1
        try:
            readings = [partial(reading, way) for way in choice.ways]
            return self._blocks.branch(choice.condition, readings, location, **ends)
        except CannotJoin as reason:
            if ends["at_end"]:
                raise refusal from reason
            raise
        finally:
            self._copies -= 1

    def _where_one(
        self, size: Dim, is_one: bool, reading: Callable[[], list[Argument]]
    ) -> list[Argument]:
        """Where a size is 1, or is not: other tensors may have it, too."""
        self._sizes_of_one[size] = is_one
        try:
            return reading()
        finally:
            del self._sizes_of_one[size]


def different_types(reason: CannotJoin, location: SourceLocation) -> BranchesDiffer:
    return BranchesDiffer(
        format_message(
            f"the branches of an if leave different types: {reason}",
            [("at", location.describe())],
        )
    )
