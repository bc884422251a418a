"""The control flow of torch.export (`cond`, `while_loop`, `scan` ...) as branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
    Dim,
    Node,
    SourceLocation,
    SymbolSource,
    TensorType,
    Value,
    values_in,
)
from sardonyx.errors import DynamicDimError, format_message


class Converter(Protocol):
    """What the conversion of a whole program lends to its regions."""

    graph: AtenGraph

    def region(self, module: torch.fx.GraphModule, arguments: Sequence[Argument]) -> list[Argument]:
        """Converts the nodes of a graph module into the current block; its results."""

    def block(self) -> Any:
        """A context in which nodes go to a block of their own."""

    def append(self, node: Node) -> None: ...

    def region_results(self, node: torch.fx.Node) -> tuple[list[Value], list[Argument]]: ...

    def new_symbol(self, like: sympy.Symbol) -> sympy.Symbol: ...

    def number(self, recorded: Any) -> Argument: ...

    def argument(self, argument: Any) -> Any: ...


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
            "flex_attention": self._flex_attention,
            "out_dtype": self._out_dtype,
            "print": lambda node, location, *args, **kwargs: [],
            "invoke_subgraph": self._invoke_after(1),
            "wrap_with_set_grad_enabled": self._invoke_before(1),
            "dynamo_bypassing_wrapper": self._invoke_before(1),
            # One that is enabled is applied before the graph is read.
            "wrap_with_autocast": self._invoke_before(4),
            "hints_wrapper": self._invoke_on_list,
            "strict_mode": self._invoke_on_list,
            "run_const_graph": self._invoke_on_list,
        }
        return converters.get(name) or (self._invoke_after(0) if name in _ONLY_MARK else None)

    # -- branches --------------------------------------------------------------------------------

    def _cond(
        self,
        node: torch.fx.Node,
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
        results, read = self._converter.region_results(node)
        arguments = bind(BRANCH, [condition])
        self._converter.append(Node(BRANCH, arguments, results, location, blocks=blocks))
        return read

    # -- loops -----------------------------------------------------------------------------------

    def _while_loop(
        self,
        node: torch.fx.Node,
        location: SourceLocation,
        condition: torch.fx.GraphModule,
        body: torch.fx.GraphModule,
        carried: Sequence[Argument],
        more: Sequence[Argument] = (),
        *,
        stack: bool = False,
    ) -> list[Argument]:
        (goes_on,) = self._converter.region(condition, [*carried, *more])
        start = self._as_values(carried, body, location)
        with self._converter.block() as block:
            inner = self._loop_inputs(block, body, start)
            after = self._converter.region(body, [*inner, *more])
            (again,) = self._converter.region(condition, [*after, *more])
            block.outputs = [again, *after, *(after if stack else ())]
        results, read = self._converter.region_results(node)
        outputs = results
        if stack:
            last = [Value(f"{r.name}_last", s.type) for r, s in zip(results, start, strict=True)]
            outputs = [*last, *results]
        self._loop(location, None, goes_on, start, block, outputs)
        return read

    def _scan(
        self,
        node: torch.fx.Node,
        location: SourceLocation,
        body: torch.fx.GraphModule,
        start: Sequence[Argument],
        items: Sequence[Value],
        more: Sequence[Argument] = (),
    ) -> list[Argument]:
        initial = self._as_values(start, body, location)
        with self._converter.block() as block:
            inner = self._loop_inputs(block, body, initial)
            current = self._items(block, items, location)
            after = self._converter.region(body, [*inner, *current, *more])
            block.outputs = [None, *after]
        results, read = self._converter.region_results(node)
        self._loop(location, items[0].shape[0], None, initial, block, results)
        return read

    def _map(
        self,
        node: torch.fx.Node,
        location: SourceLocation,
        body: torch.fx.GraphModule,
        items: Sequence[Value],
        more: Sequence[Argument] = (),
    ) -> list[Argument]:
        return self._scan(node, location, body, [], items, more)

    def _associative_scan(
        self,
        node: torch.fx.Node,
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
        results, read = self._converter.region_results(node)
        last = [Value(f"{r.name}_last", f.type) for r, f in zip(results, first, strict=True)]
        self._loop(location, items[0].shape[0], None, first, block, [*last, *results])
        return read

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
        """The iteration and the carried values as inputs of the block; the latter for the body.

        A number is carried as a tensor, and read off it in each iteration.
        """
        self._count += 1
        block.inputs.append(Value(f"iteration_{self._count}", TensorType(torch.int64, ())))
        placeholders = [n for n in body.graph.nodes if n.op == "placeholder"]
        given: list[Argument] = []
        for placeholder, first in zip(placeholders, start, strict=False):
            name = f"carried_{self._count}_{len(given)}"
            recorded = placeholder.meta.get("val", first.fake)
            if isinstance(recorded, torch.Tensor):
                given.append(self._carried_tensor(block, name, recorded, first))
                continue
            value = Value(name, first.type)
            block.inputs.append(value)
            number = _torch_private.dim_of(recorded)
            if isinstance(number, sympy.Symbol):
                number = self._converter.new_symbol(number)
                self._converter.graph.symbols[number] = SymbolSource(value, None)
            given.append(number)
        return given

    def _carried_tensor(
        self, block: Block, name: str, recorded: torch.Tensor, first: Value
    ) -> Value:
        """Where a size is not that of the first iteration, it is one of each iteration."""
        sizes: list[Dim] = []
        own: dict[int, sympy.Symbol] = {}
        for axis, (size, at_first) in enumerate(zip(recorded.shape, first.shape, strict=True)):
            meant = _torch_private.dim_of(size)
            if isinstance(meant, sympy.Symbol) and self._converter.number(size) != at_first:
                own[axis] = self._converter.new_symbol(meant)
            sizes.append(own.get(axis, self._converter.number(size)))
        value = Value(name, TensorType(recorded.dtype, tuple(sizes)))
        block.inputs.append(value)
        for axis, symbol in own.items():
            self._converter.graph.symbols[symbol] = SymbolSource(value, axis)
        return value

    def _items(
        self, block: Block, items: Sequence[Value], location: SourceLocation
    ) -> list[Argument]:
        """What an iteration sees of each tensor that is gone through along its first dim."""
        index = torch.ops.aten.index.Tensor
        return [self._call(index, [item, [block.inputs[0]]], item, 1, location) for item in items]

    # -- regions that only mark their body, or are one operator ------------------------------------

    def _invoke_before(self, count: int) -> Callable[..., list[Argument]]:
        """A body after so many options, its operands behind it."""

        def convert(
            node: torch.fx.Node, location: SourceLocation, *args: Any, **options: Any
        ) -> list[Argument]:
            return self._converter.region(args[count], args[count + 1 :])

        return convert

    def _invoke_after(self, count: int) -> Callable[..., list[Argument]]:
        """A body, then so many options, then its operands."""

        def convert(
            node: torch.fx.Node, location: SourceLocation, body: Any, *args: Any, **options: Any
        ) -> list[Argument]:
            return self._converter.region(body, args[count:])

        return convert

    def _invoke_on_list(
        self,
        node: torch.fx.Node,
        location: SourceLocation,
        body: torch.fx.GraphModule,
        operands: Sequence[Argument],
        *options: Any,
        **more: Any,
    ) -> list[Argument]:
        return self._converter.region(body, operands)

    def _flex_attention(
        self, node: torch.fx.Node, location: SourceLocation, *args: Any
    ) -> list[Argument]:
        """PyTorch's own form of it: the scores of all positions, changed, masked and summed."""
        try:
            body, operands = _torch_private.flex_attention_form(node)
        except _torch_private.FixedSizesError as error:
            raise DynamicDimError(
                format_message(
                    "flex_attention of this PyTorch takes the sizes of the example for all sizes",
                    [
                        ("at", [location.describe()]),
                        ("try", ["PyTorch 2.12 or later", "or scaled_dot_product_attention"]),
                    ],
                )
            ) from error
        return self._converter.region(body, [self._converter.argument(o) for o in operands])

    def _out_dtype(
        self, node: torch.fx.Node, location: SourceLocation, op: Any, dtype: torch.dtype, *args: Any
    ) -> list[Argument]:
        """The operator on arguments that are wide enough for the result."""
        common = dtype
        for argument in values_in(list(args)):
            common = torch.promote_types(common, argument.dtype)
        cast = torch.ops.aten._to_copy.default
        wide = [
            self._call_typed(cast, [a], TensorType(common, a.shape), location, dtype=common)
            if isinstance(a, Value)
            else a
            for a in args
        ]
        results, _ = self._converter.region_results(node)
        made = self._call_typed(op, wide, TensorType(common, results[0].shape), location)
        self._converter.append(Node(cast, bind(cast, [made], {"dtype": dtype}), results, location))
        return list(results)

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

    def _as_values(
        self, carried: Sequence[Argument], body: torch.fx.GraphModule, location: SourceLocation
    ) -> list[Value]:
        """Numbers as tensors, which is what a loop carries; of the type that the body takes."""
        placeholders = [n for n in body.graph.nodes if n.op == "placeholder"]
        op = torch.ops.aten.scalar_tensor.default
        values: list[Value] = []
        for argument, placeholder in zip(carried, placeholders, strict=False):
            if not isinstance(argument, Value):
                dtype = number_dtype(placeholder.meta.get("val", argument))
                type = TensorType(dtype, ())
                argument = self._call_typed(op, [argument], type, location, dtype=dtype)
            values.append(argument)
        return values


_ONLY_MARK = frozenset(
    {
        "invoke_quant", "invoke_quant_packed", "tag_activation_checkpoint", "wrap",
        "wrap_activation_checkpoint",
    }
)  # fmt: skip
"""Operators that say something of a region to a compiler; its body comes first."""


def number_dtype(number: Any) -> torch.dtype:
    """In which a Python number, or a symbolic one, loses nothing."""
    if isinstance(number, sympy.Expr):
        return torch.int64 if number.is_integer else torch.float64
    if isinstance(number, (bool, torch.SymBool, sympy.Basic)):
        return torch.bool
    return torch.int64 if isinstance(number, (int, torch.SymInt)) else torch.float64
