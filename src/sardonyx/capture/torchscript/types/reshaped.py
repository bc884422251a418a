"""`x.unsqueeze_(0)`: a tensor that all variables which hold it see in another shape from then on.

A variable keeps the tensor it was given; what that is now is an object of the program, so that
branches and loops hand it on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from sardonyx.aten.graph import Argument, Block, Value
from sardonyx.capture.torchscript.control_flow.chosen_objects import (
    is_held_by_result,
    may_have_other_names,
)
from sardonyx.capture.torchscript.types.values import AnyRank, Heap, ScriptInstance
from sardonyx.errors import CaptureError
from sardonyx.functionalization.functional_variants import functional_variant
from sardonyx.functionalization.layout import is_dense

_NOW = "now"


class ReshapedTensors:
    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._cells: dict[Value | AnyRank, ScriptInstance] = {}
        self._shapes: dict[Value | AnyRank, Value | AnyRank] = {}
        """What was given for a tensor in its shape of then: that tensor."""
        self._blocks: list[tuple[Block, int]] = []
        """Those that are being read, from the outermost in; with the age of what they make."""

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        self._blocks.append((block, self._heap.age()))
        try:
            yield
        finally:
            self._blocks.pop()

    def now(self, argument: Argument) -> Argument:
        if not self._cells:
            return argument
        if isinstance(argument, tuple):
            return tuple(self.now(item) for item in argument)
        if not isinstance(argument, (Value, AnyRank)):
            return argument
        tensor = self.itself(argument)
        cell = self._cells.get(tensor)
        if cell is None:
            return argument
        shape = cell.state[_NOW]
        if shape is not tensor:
            self._shapes[shape] = tensor
        return shape

    def itself(self, tensor: Value | AnyRank) -> Value | AnyRank:
        """The first name of a tensor that operators gave back as it was."""
        while True:
            source = self._shapes.get(tensor) or _given_back(tensor)
            if source is None:
                return tensor
            tensor = source

    def reshape(self, tensor: Value | AnyRank, view: Value | AnyRank) -> None:
        """From here on `tensor` is its view."""
        tensor = self.itself(tensor)
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

    def check_shape_is_its_own(self, change: Any, tensor: Value | AnyRank) -> None:
        """A branch that gave the tensor, or a loop that carries it, does not hand its shape
        back."""
        tensor = self.itself(tensor)
        made_by = (tensor.flat if isinstance(tensor, AnyRank) else tensor).producer
        is_chosen = made_by is None or made_by.blocks
        if (is_chosen and may_have_other_names(change)) or is_held_by_result(change):
            raise CaptureError(
                f"{change.kind()} changes the shape of a tensor that another variable may hold,"
                " too, which depends on a branch or a loop: use the operator that gives a new one"
            )


def _given_back(tensor: Value | AnyRank) -> Value | None:
    """What an operator was given that gives this very tensor: `y.add_(1)`, `y.float()`."""
    if not isinstance(tensor, Value) or tensor.producer is None or tensor.producer.blocks:
        return None
    made_by = tensor.producer
    if made_by.op._schema.is_mutable:
        form = functional_variant(made_by)
        name = None if form is None else form.returned.get(made_by.outputs.index(tensor))
        source = None if name is None else made_by.arguments[name]
        return source if isinstance(source, Value) else None
    source, layout = made_by.arguments.get("self"), made_by.arguments.get("memory_format")
    if not isinstance(source, Value) or source.dtype != tensor.dtype:
        return None
    match made_by.op._schema.name:
        case "aten::to" | "aten::type_as":
            is_same = layout is None and not made_by.arguments.get("copy", False)
        case "aten::contiguous":
            is_dense_now = source.fake is not None and is_dense(source.fake)
            is_plain = (layout or torch.contiguous_format) == torch.contiguous_format
            is_same = is_dense_now and is_plain
        case _:
            is_same = False
    return source if is_same else None
