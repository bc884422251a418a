"""`x.unsqueeze_(0)`: every variable that holds the tensor sees its new shape from then on.

A variable keeps its first Value. The view that this has become is the state of a heap object, so
that branches join it. Where another Value may be the same tensor (the result of a branch or a loop,
or an item of a list of dynamic length), the change is refused, or the read that would miss it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sardonyx.aten.graph import Argument, Block, Value
from sardonyx.capture.torchscript.refusals import ScriptRefusal
from sardonyx.capture.torchscript.types.aliases import pairs
from sardonyx.capture.torchscript.types.values import Heap, Mutable, reachable
from sardonyx.functionalization.alias_analysis import is_its_input
from sardonyx.functionalization.alias_tracking import is_dense
from sardonyx.functionalization.functional_variants import pure_form


class _Shape(Mutable):
    """The view that a tensor is now."""

    noun = "a tensor"

    def __init__(self, tensor: Value) -> None:
        self.held: tuple[Value] = (tensor,)


class ReshapedTensors:
    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._shapes: dict[Value, _Shape] = {}
        self._first_names: dict[Value, Value] = {}
        """The tensor that a view stands for."""
        self._related: dict[Value, list[Value]] = {}
        """Values that may be the same tensor."""
        self._copied: set[Value] = set()
        """Values that a list of dynamic length has copies of, or that are such copies."""
        self._blocks: list[tuple[Block, int]] = []
        """The blocks that are being read, from the outermost in, with the age of their values."""

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        self._blocks.append((block, self._heap.age()))
        try:
            yield
        finally:
            self._blocks.pop()

    def relate(self, result: Argument, side: Argument) -> None:
        """A branch or a loop returned `result`, which may be `side`."""
        for one, other in pairs(result, side):
            if isinstance(one, Value) and isinstance(other, Value) and one is not other:
                one, other = self._first_name(one), self._first_name(other)
                self._related.setdefault(one, []).append(other)
                self._related.setdefault(other, []).append(one)

    def note_copy(self, item: Value) -> None:
        """A list of dynamic length holds a copy of the tensor, or it is one of such a list."""
        self._copied.add(self._first_name(item))

    def now(self, argument: Argument) -> Argument:
        if not self._shapes:
            return argument
        if isinstance(argument, tuple):
            return tuple(self.now(item) for item in argument)
        if not isinstance(argument, Value):
            return argument
        tensor = self._first_name(argument)
        shape = self._shapes.get(tensor)
        if shape is None:
            return argument
        (view,) = shape.state
        if view is not tensor:
            self._first_names[view] = tensor
        return view

    def _first_name(self, tensor: Value) -> Value:
        """Follows operators that returned their input."""
        while True:
            source = self._first_names.get(tensor) or _given_back(tensor)
            if source is None:
                return tensor
            tensor = source

    def reshape(self, tensor: Value, view: Value) -> None:
        """From here on `tensor` is its view."""
        tensor = self._first_name(tensor)
        same = reachable([tensor], lambda one: self._related.get(one, ()))
        if not self._copied.isdisjoint(same) or self._is_from_outside_the_loop(tensor):
            raise ScriptRefusal(
                "the shape of a tensor is changed in place that a loop carries, or that a list of"
                " dynamic length holds",
                "use the operator without `_`, which returns a new tensor",
            )
        self._heap.set(self._shape(tensor), (view,))
        for relative in same - {tensor}:
            self._heap.outdate(self._shape(relative))

    def _shape(self, tensor: Value) -> _Shape:
        if tensor not in self._shapes:
            made = self._shapes[tensor] = _Shape(tensor)
            place = self._depth(tensor)
            made.serial = 0 if place is None else self._blocks[place][1]
        return self._shapes[tensor]

    def _is_from_outside_the_loop(self, tensor: Value) -> bool:
        """Whether another iteration than this one may see it."""
        loops = [depth for depth, (block, _) in enumerate(self._blocks) if block.inputs]
        place = self._depth(tensor)
        if not loops:
            return False
        return place is None or place < loops[-1] or tensor in self._blocks[loops[-1]][0].inputs

    def _depth(self, tensor: Value) -> int | None:
        """The place of the block that makes the tensor; None for the program itself."""
        for depth, (block, _) in reversed(list(enumerate(self._blocks))):
            if tensor in block.inputs or any(n is tensor.producer for n in block.nodes):
                return depth
        return None


def _given_back(tensor: Value) -> Value | None:
    """The input that an operator returned as its result: `y.add_(1)`, `y.float()`."""
    if tensor.producer is None or tensor.producer.blocks:
        return None
    made_by = tensor.producer
    if is_its_input(made_by):
        return next(made_by.inputs())
    if made_by.op._schema.is_mutable:
        form = pure_form(made_by)
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
