"""`x.unsqueeze_(0)`: a tensor that all variables which hold it see in another shape from then on.

A variable keeps the tensor it was given; what that is now is an object of the program, so that
branches and loops hand it on.
"""

from __future__ import annotations

from typing import Any

from sardonyx.capture.graph import Argument, Block, Value
from sardonyx.capture.torchscript.chosen_objects import may_have_other_names
from sardonyx.capture.torchscript.values import AnyRank, Heap, ScriptInstance
from sardonyx.errors import CaptureError

_NOW = "now"


class ReshapedTensors:
    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._cells: dict[Value | AnyRank, ScriptInstance] = {}
        self._blocks: list[tuple[Block, int]] = []
        """Those that are being read, from the outermost in; with the age of what they make."""

    def enter(self, block: Block) -> None:
        self._blocks.append((block, self._heap.age()))

    def leave(self) -> None:
        self._blocks.pop()

    def now(self, argument: Argument) -> Argument:
        if not self._cells:
            return argument
        if isinstance(argument, tuple):
            return tuple(self.now(item) for item in argument)
        is_tensor = isinstance(argument, (Value, AnyRank))
        cell = self._cells.get(argument) if is_tensor else None
        return argument if cell is None else cell.state[_NOW]

    def reshape(self, tensor: Value | AnyRank, view: Value | AnyRank) -> None:
        """From here on `tensor` is its view."""
        cell = self._cells.get(tensor)
        if cell is None:
            memory = tensor.flat if isinstance(tensor, AnyRank) else tensor
            cell = self._cells[tensor] = ScriptInstance(memory.name)
            cell.serial = self._age_of(memory)
            cell.state = {_NOW: tensor}
        self._heap.set(cell, {_NOW: view})

    def _age_of(self, tensor: Value) -> int:
        for block, age in reversed(self._blocks):
            if tensor in block.inputs or any(n is tensor.producer for n in block.nodes):
                return age
        return 0


def check_shape_is_its_own(change: Any, tensor: Value | AnyRank) -> None:
    """A branch that gave the tensor, or a loop that carries it, does not hand its shape back."""
    made_by = (tensor.flat if isinstance(tensor, AnyRank) else tensor).producer
    if (made_by is None or made_by.blocks) and may_have_other_names(change):
        raise CaptureError(
            f"{change.kind()} changes the shape of a tensor that another variable may hold, too,"
            " which depends on a branch or a loop: use the operator that gives a new one"
        )
