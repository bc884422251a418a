"""The control flow of torch.export (`cond`, `while_loop`, `scan` ...) as branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import sympy
import torch

from sardonyx import _torch_private
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
            "while_loop_stack_output": self._while_loop_stacking,
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
            with self._block() as block:
                block.outputs = self._converter.region(body, operands)
            blocks.append(block)
        given = self._as_value(condition, location)
        self._converter.append(
            Node(BRANCH, bind(BRANCH, [given]), results, location, blocks=blocks)
        )
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
    ) -> list[Argument]:
        return self._while(results, location, condition, body, carried, more, stack=False)

    def _while_loop_stacking(
        self,
        results: list[Value],
        location: SourceLocation,
        condition: torch.fx.GraphModule,
        body: torch.fx.GraphModule,
        carried: Sequence[Argument],
        more: Sequence[Argument] = (),
    ) -> list[Argument]:
        return self._while(results, location, condition, body, carried, more, stack=True)

    def _while(
        self,
        results: list[Value],
        location: SourceLocation,
        condition: torch.fx.GraphModule,
        body: torch.fx.GraphModule,
        carried: Sequence[Argument],
        more: Sequence[Argument],
        *,
        stack: bool,
    ) -> list[Argument]:
        start = [self._as_value(c, location) for c in carried]
        (goes_on,) = self._converter.region(condition, [*carried, *more])
        with self._block() as block:
            inner = self._loop_inputs(block, body, start)
            after = self._converter.region(body, [*inner, *more])
            (again,) = self._converter.region(condition, [*after, *more])
            kept = [self._as_value(a, location) for a in after]
            block.outputs = [self._as_value(again, location), *kept, *(kept if stack else ())]
        first = self._as_value(goes_on, location)
        last = [Value(f"{r.name}_last", s.type) for r, s in zip(results, start, strict=True)]
        outputs = [*last, *results] if stack else results
        self._loop(location, None, first, start, block, outputs)
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
        initial = [self._as_value(s, location) for s in start]
        with self._block() as block:
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
        with self._block() as block:
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
        condition: Value | None,
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
        for index, first in enumerate(start):
            meant = placeholders[index].meta.get("val")
            is_tensor = isinstance(meant, torch.Tensor)
            value = Value(
                f"carried_{self._count}_{index}", type_of(meant) if is_tensor else first.type
            )
            block.inputs.append(value)
            number = _torch_private.dim_of(meant)
            if not is_tensor and isinstance(number, sympy.Symbol):
                self._converter.graph.symbols.setdefault(number, SymbolSource(value, None))
                given.append(number)
            else:
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

    @contextmanager
    def _block(self) -> Iterator[Block]:
        with self._converter.block() as block:
            yield block

    def _as_value(self, argument: Argument, location: SourceLocation) -> Value:
        """A number as a tensor without dims."""
        if isinstance(argument, Value):
            return argument
        is_bool = isinstance(argument, (bool, sympy.logic.boolalg.Boolean))
        is_float = isinstance(argument, float)
        dtype = torch.bool if is_bool else torch.float64 if is_float else torch.int64
        return self._call_typed(
            torch.ops.aten.scalar_tensor.default,
            [argument],
            TensorType(dtype, ()),
            location,
            dtype=dtype,
        )

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
