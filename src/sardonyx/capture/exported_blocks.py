"""The control flow of torch.export (`cond`, `while_loop`, `scan` ...) as branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import sympy
import torch

from sardonyx.capture.bind import bind
from sardonyx.capture.control_flow import BRANCH, LOOP
from sardonyx.capture.graph import (
    Argument,
    AtenGraph,
    Block,
    Node,
    SourceLocation,
    SymbolSource,
    TensorType,
    Value,
)
from sardonyx.capture.infer import type_of
from sardonyx.errors import UnsupportedOperatorError, format_message


class Converter(Protocol):
    """What the conversion of a whole program lends to its regions."""

    graph: AtenGraph

    def region(self, module: torch.fx.GraphModule, arguments: Sequence[Argument]) -> list[Argument]:
        """Converts the nodes of a graph module into the current block; its results."""

    def block(self) -> Any:
        """A context in which nodes go to a block of their own."""

    def append(self, node: Node) -> None: ...

    def results_of(self, node: torch.fx.Node) -> list[Value]: ...


class Regions:
    """Converts the calls of higher-order operators."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter
        self._count = 0

    def converter_of(self, name: str) -> Callable[..., list[Argument]] | None:
        converters: dict[str, Callable[..., list[Argument]]] = {
            "cond": self._cond,
            "while_loop": self._while_loop,
            "while_loop_stack_output": partial(self._while_loop, stack=True),
            "scan": self._scan,
            "map_impl": self._map,
            "associative_scan": self._associative_scan,
            "invoke_subgraph": self._invoke_subgraph,
            "invoke_quant": self._invoke,
            "invoke_quant_packed": self._invoke,
        }
        return converters.get(name)

    # -- branches --------------------------------------------------------------------------------

    def _cond(
        self,
        results: list[Value],
        location: SourceLocation,
        condition: Argument,
        then: torch.fx.GraphModule,
        otherwise: torch.fx.GraphModule,
        operands: Sequence[Argument] = (),
    ) -> list[Argument]:
        if isinstance(condition, bool):  # a size that is always on one side
            return self._converter.region(then if condition else otherwise, operands)
        blocks = []
        for body in (then, otherwise):
            with self._converter.block() as block:
                block.outputs = self._converter.region(body, operands)
            blocks.append(block)
        arguments = bind(BRANCH, [condition])
        self._converter.append(Node(BRANCH, arguments, results, location, blocks=blocks))
        return list(results)

    # -- loops -----------------------------------------------------------------------------------

    def _while_loop(
        self,
        results: list[Value],
        location: SourceLocation,
        condition: torch.fx.GraphModule,
        body: torch.fx.GraphModule,
        carried: Sequence[Argument],
        more: Sequence[Argument] = (),
        *,
        stack: bool = False,
    ) -> list[Argument]:
        start = _tensors(carried, location)
        (goes_on,) = self._converter.region(condition, [*carried, *more])
        with self._converter.block() as block:
            inner = self._loop_inputs(block, body, start)
            after = self._converter.region(body, [*inner, *more])
            (again,) = self._converter.region(condition, [*after, *more])
            block.outputs = [again, *after, *(after if stack else ())]
        outputs = results
        if stack:
            last = [Value(f"{r.name}_last", s.type) for r, s in zip(results, start, strict=True)]
            outputs = [*last, *results]
        self._loop(location, None, goes_on, start, block, outputs)
        return list(results)

    def _scan(
        self,
        results: list[Value],
        location: SourceLocation,
        body: torch.fx.GraphModule,
        start: Sequence[Argument],
        items: Sequence[Value],
        more: Sequence[Argument] = (),
    ) -> list[Argument]:
        initial = _tensors(start, location)
        with self._converter.block() as block:
            inner = self._loop_inputs(block, body, initial)
            current = self._items(block, items, location)
            after = self._converter.region(body, [*inner, *current, *more])
            block.outputs = [None, *after]
        self._loop(location, items[0].shape[0], None, initial, block, results)
        return list(results)

    def _map(
        self,
        results: list[Value],
        location: SourceLocation,
        body: torch.fx.GraphModule,
        items: Sequence[Value],
        more: Sequence[Argument] = (),
    ) -> list[Argument]:
        return self._scan(results, location, body, [], items, more)

    def _associative_scan(
        self,
        results: list[Value],
        location: SourceLocation,
        combine: torch.fx.GraphModule,
        items: Sequence[Value],
        more: Sequence[Argument] = (),
    ) -> list[Argument]:
        """From the first item on, one after the other: what any order gives."""
        select = torch.ops.aten.select.int
        first = [self._call(select, [item, 0, 0], item, 1, location) for item in items]
        with self._converter.block() as block:
            inner = self._loop_inputs(block, combine, first)
            current = self._items(block, items, location)
            combined = self._converter.region(combine, [*inner, *current, *more])
            # The first item is combined with nothing.
            is_first = self._call_typed(
                torch.ops.aten.eq.Scalar,
                [block.inputs[0], 0],
                TensorType(torch.bool, ()),
                location,
            )
            after = [
                self._call_typed(
                    torch.ops.aten.where.self, [is_first, item, made], made.type, location
                )
                for item, made in zip(current, combined, strict=True)
            ]
            block.outputs = [None, *after, *after]
        last = [Value(f"{r.name}_last", f.type) for r, f in zip(results, first, strict=True)]
        self._loop(location, items[0].shape[0], None, first, block, [*last, *results])
        return list(results)

    def _loop(
        self,
        location: SourceLocation,
        count: Argument,
        condition: Argument,
        carried: Sequence[Value],
        block: Block,
        outputs: list[Value],
    ) -> None:
        arguments = bind(LOOP, [count, condition, list(carried)])
        self._converter.append(Node(LOOP, arguments, outputs, location, blocks=[block]))

    def _loop_inputs(
        self, block: Block, body: torch.fx.GraphModule, start: Sequence[Value]
    ) -> list[Argument]:
        """The iteration and the carried values as inputs of the block; the latter for the body."""
        self._count += 1
        block.inputs.append(Value(f"iteration_{self._count}", TensorType(torch.int64, ())))
        placeholders = [n for n in body.graph.nodes if n.op == "placeholder"]
        given: list[Argument] = []
        for placeholder, first in zip(placeholders, start, strict=False):
            meant = placeholder.meta.get("val", first.fake)
            type = first.type if meant is None else type_of(meant)
            value = Value(f"carried_{self._count}_{len(given)}", type)
            block.inputs.append(value)
            self._note_sizes(value)
            given.append(value)
        return given

    def _note_sizes(self, value: Value) -> None:
        for axis, size in enumerate(value.shape):
            if isinstance(size, sympy.Symbol):
                self._converter.graph.symbols.setdefault(size, SymbolSource(value, axis))

    def _items(
        self, block: Block, items: Sequence[Value], location: SourceLocation
    ) -> list[Argument]:
        """What an iteration sees of each tensor that is gone through along its first dim."""
        index = torch.ops.aten.index.Tensor
        return [self._call(index, [item, [block.inputs[0]]], item, 1, location) for item in items]

    # -- regions that only mark their body -------------------------------------------------------

    def _invoke_subgraph(
        self,
        results: list[Value],
        location: SourceLocation,
        body: torch.fx.GraphModule,
        identifier: str,
        *operands: Argument,
    ) -> list[Argument]:
        return self._converter.region(body, operands)

    def _invoke(
        self,
        results: list[Value],
        location: SourceLocation,
        body: torch.fx.GraphModule,
        *operands: Argument,
        **options: Any,
    ) -> list[Argument]:
        return self._converter.region(body, operands)

    # -- values ----------------------------------------------------------------------------------

    def _call(
        self, op: Any, args: list[Argument], like: Value, dims_less: int, location: SourceLocation
    ) -> Value:
        return self._call_typed(op, args, TensorType(like.dtype, like.shape[dims_less:]), location)

    def _call_typed(
        self,
        op: Any,
        args: list[Argument],
        type: TensorType,
        location: SourceLocation,
        **kwargs: Argument,
    ) -> Value:
        self._count += 1
        value = Value(f"region_{self._count}", type)
        self._converter.append(Node(op, bind(op, args, kwargs), [value], location))
        return value


def _tensors(carried: Sequence[Argument], location: SourceLocation) -> list[Value]:
    numbers = [c for c in carried if not isinstance(c, Value)]
    if numbers:
        raise UnsupportedOperatorError(
            format_message(
                f"a loop that carries the Python number {numbers[0]} has no ONNX form yet",
                [("first", location.describe()), ("try", f"torch.tensor({numbers[0]})")],
            )
        )
    return list(carried)
