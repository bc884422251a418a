"""The rest of a program, read once for each path that the program may have taken to it.

A branch can leave two types, a squeeze or an argument two ranks, and a loop other types than it
found. The rest of the program is then read in each branch, where its types are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx.aten.graph import Argument, Dim, SourceLocation, Value
from sardonyx.capture.torchscript.control_flow.branches import Readings
from sardonyx.capture.torchscript.control_flow.loops import FOREVER, Loop
from sardonyx.capture.torchscript.refusals import BranchesDiffer, CannotJoin, TypesChange
from sardonyx.capture.torchscript.types.values import ScriptList
from sardonyx.errors import CaptureError, format_message

if TYPE_CHECKING:
    from sardonyx.capture.torchscript.interpreter.reader import GraphReader

SQUEEZES = frozenset({"aten::squeeze", "aten::squeeze_"})
MOST_COPIES = 6
"""The depth of nested branches that each have a copy of the rest of the program."""
Rest = Callable[[], list[Argument]]
"""Reads the rest of the program."""


class PathSplitter:
    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._copies = 0
        self._sizes_of_one: dict[Dim, bool] = {}

    @property
    def is_at_limit(self) -> bool:
        return self._copies >= MOST_COPIES

    def branch(
        self,
        condition: Argument,
        readings: Readings,
        location: SourceLocation,
        at_end: bool,
        refusal: Callable[[CannotJoin], CaptureError],
        copies: int = 1,
    ) -> list[Argument]:
        """The results of one of two readings of the rest; `refusal` is raised where they cannot be
        joined at the end of the program."""
        self._copies += copies
        try:
            return self._reader.branches.branch(condition, readings, location, at_end=at_end)
        except CannotJoin as reason:
            if at_end:
                raise refusal(reason) from reason
            raise
        finally:
            self._copies -= copies

    # -- squeezes --------------------------------------------------------------------------------

    def squeezed(
        self, node: Any, tensor: Value, axes: Sequence[int], rest: Rest, at_end: bool
    ) -> list[Argument]:
        """The rest is read once for each rank that the tensor may have after `x.squeeze()`: an axis
        is dropped where its size, which may be dynamic, is 1 at run time."""
        reader = self._reader
        location = reader.here = reader.location(node)
        if not axes:
            self._set_squeezed(node, tensor)
            return rest()
        *others, axis = axes
        size = tensor.shape[axis]

        def dropped() -> list[Argument]:
            # PyTorch squeezes a symbolic size only if it knows that it is 1.
            of_one = torch.ops.aten.squeeze.dim, [tensor, axis]
            of_any = torch.ops.aten.select.int, [tensor, axis, 0]
            view = reader.emit(*(of_one if size == 1 else of_any))[0]
            return self.squeezed(node, view, others, rest, at_end)

        kept = partial(self.squeezed, node, tensor, others, rest, at_end)
        known = self._sizes_of_one.get(size) if _may_be_one(size) else size == 1
        if known is not None:
            return dropped() if known else kept()
        if self.is_at_limit:
            fields = [("at", location.describe()), ("try", "name the dim: squeeze(0)")]
            raise CaptureError(format_message("a squeeze() may leave too many ranks", fields))
        condition = reader.numbers.compute("aten::eq", [size, 1], torch.bool)
        readings = [
            partial(self._where_one, size, True, dropped),
            partial(self._where_one, size, False, kept),
        ]
        refusal = partial(BranchesDiffer, location=location)
        return self.branch(condition, readings, location, at_end, refusal)

    def _set_squeezed(self, node: Any, view: Value) -> None:
        held = self._reader.env[node.inputsAt(0).debugName()]
        is_changed = node.kind() == "aten::squeeze_" and view is not held
        self._reader.set(node, self._reader.reshape(node, view) if is_changed else view)

    def _where_one(self, size: Dim, is_one: bool, reading: Rest) -> list[Argument]:
        """Where a size is 1, or is not: other tensors may have it, too."""
        self._sizes_of_one[size] = is_one
        try:
            return reading()
        finally:
            del self._sizes_of_one[size]

    # -- loops -----------------------------------------------------------------------------------

    def first_iterations(
        self, node: Any, refusal: TypesChange, rest: Rest, at_end: bool
    ) -> list[Argument]:
        """Peels iterations off a loop that leaves other types than it found, until the types stay
        the same. The rest is read once for each number of peeled iterations."""
        reader = self._reader
        location = reader.here = reader.location(node)
        count, condition, *start = reader.inputs_of(node)
        (block,) = node.blocks()
        go_on = partial(reader.go_on, node, rest)

        def peeled(
            done: int, left: Argument, goes_on: Argument, carried: Sequence[Argument]
        ) -> list[Argument]:
            if self.is_at_limit:
                raise refusal
            is_entered = goes_on
            if left != FOREVER:
                is_any = reader.numbers.compute("aten::gt", [left, 0], torch.bool)
                is_entered = reader.numbers.compute("aten::__and__", [is_any, goes_on], torch.bool)
                left = reader.numbers.compute("aten::sub", [left, 1], torch.int64)

            def one_more() -> list[Argument]:
                goes_on, *after = reader.iteration(block, done, carried)
                following = partial(reader.iteration, block, done=done + 1)
                try:
                    with reader.attempt():
                        loop = Loop(left, goes_on, after, following, location)
                        results = reader.loops.loop(loop)
                except TypesChange:
                    return peeled(done + 1, left, goes_on, after)
                return go_on(results)

            readings: Readings = [one_more, partial(go_on, carried)]
            return self.branch(is_entered, readings, location, at_end, lambda _: refusal)

        return peeled(0, count, condition, start)


def squeezed_axes(operands: Sequence[Argument]) -> list[int] | None:
    """The axes that a squeeze drops where they are 1; None where all of their sizes are known."""
    if not isinstance(operands[0], Value) or not operands[0].has_shape:
        return None
    tensor, *dims = operands
    rank = len(tensor.shape)
    axes: Sequence[Argument] = range(rank)
    if dims:
        axes = dims[0].state if isinstance(dims[0], ScriptList) else (dims[0],)
    if not all(isinstance(axis, int) and -rank <= axis < rank for axis in axes):
        return None
    axes = sorted({axis % rank for axis in axes})
    return None if all(isinstance(tensor.shape[axis], int) for axis in axes) else axes


def _may_be_one(size: Dim) -> bool:
    return isinstance(size, sympy.Expr) and (size - 1).is_zero is not False
