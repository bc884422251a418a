"""Runs a recorded graph in PyTorch, node by node, and keeps every value on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
import torch

from sardonyx._torch_private import OpOverload
from sardonyx.aten import sequences
from sardonyx.aten.control_flow import BRANCH
from sardonyx.aten.graph import Argument, AtenGraph, Block, Node, Value
from sardonyx.aten.pytree import tensors_in
from sardonyx.aten.schema import call_by_name
from sardonyx.errors import (
    InternalError,
    SardonyxError,
    VerificationError,
    first_line,
)


def node_values(
    graph: AtenGraph, inputs: Sequence[torch.Tensor]
) -> tuple[list[Any], dict[Value, Any]]:
    """What the graph returns for these inputs, and what each of its values is: a tensor, or a list
    of tensors."""
    run = _Run(graph)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        return run.block(graph, inputs), run.values


class _Run:
    def __init__(self, graph: AtenGraph) -> None:
        self._symbols = graph.symbols
        self.values: dict[Value, Any] = {}

    def _nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            try:
                results = self._results(node)
            except SardonyxError:  # about a node inside of it
                raise
            except (RuntimeError, ValueError, TypeError, LookupError) as error:
                raise VerificationError(
                    f"{node.display_name} fails where it is run alone: {first_line(error)}",
                    [("first", node.location.describe()), ("inputs", node.describe_inputs())],
                ) from error
            if len(results) != len(node.outputs):
                raise InternalError(
                    f"{node.name} gave {len(results)} of {len(node.outputs)} results"
                )
            self.values.update(zip(node.outputs, results, strict=True))

    def _results(self, node: Node) -> list[Any]:
        if node.blocks:
            return self._branch(node) if node.op is BRANCH else self._loop(node)
        arguments = {name: self._argument(a) for name, a in node.arguments.items()}
        on_lists = _LIST_OPERATORS.get(node.op)
        if on_lists is not None:
            return [on_lists(**arguments)]
        for parameter in node.op._schema.arguments:
            if "Tensor" not in str(parameter.type):
                arguments[parameter.name] = _as_number(arguments[parameter.name])
        return tensors_in(call_by_name(node.op, arguments))

    def _branch(self, node: Node) -> list[Any]:
        holds = bool(_as_number(self._argument(node.arguments["condition"])))
        return self.block(node.blocks[0 if holds else 1])

    def _loop(self, node: Node) -> list[Any]:
        (body,) = node.blocks
        count = _as_number(self._argument(node.arguments["count"]))
        goes_on = _as_number(self._argument(node.arguments["condition"]))
        carried = [self._argument(a) for a in node.arguments["carried"]]
        stacked: list[list[Any]] = [[] for _ in range(len(node.outputs) - len(carried))]
        iteration = 0
        while (count is None or iteration < count) and (goes_on is None or goes_on):
            given = [torch.tensor(iteration), *carried]
            again, *results = self.block(body, given)
            carried, items = results[: len(carried)], results[len(carried) :]
            for kept, item in zip(stacked, items, strict=True):
                kept.append(item)
            goes_on = _as_number(again)
            iteration += 1
        if stacked and not iteration:
            raise VerificationError(
                f"a loop that runs no iteration leaves nothing to stack: {node.location.describe()}"
            )
        return [*carried, *(torch.stack([torch.as_tensor(i) for i in kept]) for kept in stacked)]

    def block(self, block: Block, inputs: Sequence[Any] = ()) -> list[Any]:
        self.values.update(zip(block.inputs, inputs, strict=True))
        self._nodes(block.nodes)
        return [self._argument(output) for output in block.outputs]

    def _argument(self, argument: Argument) -> Any:
        if isinstance(argument, Value):
            return self.values[argument] if argument.constant is None else argument.constant
        if isinstance(argument, sympy.Basic):
            return self._number(argument)
        if isinstance(argument, (list, tuple)):
            return [self._argument(item) for item in argument]
        return argument

    def _number(self, expression: sympy.Basic) -> bool | int | float:
        sizes: dict[Any, sympy.Integer] = {}
        for symbol in expression.free_symbols:
            source = self._symbols[symbol]
            tensor = self._argument(source.value)
            size = tensor.item() if source.axis is None else tensor.shape[source.axis]
            sizes[symbol] = sympy.Integer(size)
        number = expression.xreplace(sizes)
        if number in (sympy.true, sympy.false):
            return bool(number)
        return int(number) if number.is_integer else float(number)


def _as_number(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        return argument.item()
    if isinstance(argument, list):
        return [_as_number(item) for item in argument]
    return argument


def _inserted(
    sequence: list[torch.Tensor], item: torch.Tensor, position: Any
) -> list[torch.Tensor]:
    place = len(sequence) if position is None else int(position)
    return [*sequence[:place], item, *sequence[place:]]


def _erased(sequence: list[torch.Tensor], position: Any) -> list[torch.Tensor]:
    place = int(position) % len(sequence)
    return [*sequence[:place], *sequence[place + 1 :]]


def _joined(sequence: list[torch.Tensor], dim: int, new_dim: bool) -> torch.Tensor:
    return torch.stack(sequence, dim) if new_dim else torch.cat(sequence, dim)


def _with_item(stacked: torch.Tensor, item: torch.Tensor, position: Any) -> torch.Tensor:
    changed = stacked.clone()
    changed[int(position)] = item
    return changed


_LIST_OPERATORS: Mapping[OpOverload, Callable[..., Any]] = {
    sequences.SEQUENCE: lambda items: list(items),
    sequences.SEQUENCE_EMPTY: lambda dtype: [],
    sequences.SEQUENCE_UNSTACK: lambda stacked: list(stacked.unbind()),
    sequences.SEQUENCE_SPLIT: lambda self, sizes, dim: list(self.split(sizes.tolist(), dim)),
    sequences.SEQUENCE_INSERT: _inserted,
    sequences.SEQUENCE_ERASE: _erased,
    sequences.SEQUENCE_AT: lambda sequence, position: sequence[int(position)],
    sequences.SEQUENCE_LENGTH: lambda sequence: torch.tensor(len(sequence)),
    sequences.SEQUENCE_CONCAT: _joined,
    sequences.ITEMS_STACK: lambda items: torch.stack(items),
    sequences.ITEMS_JOIN: lambda stacked: torch.cat(stacked),
    sequences.ITEMS_REVERSE: lambda stacked: stacked.flip(0),
    sequences.ITEMS_SET: _with_item,
}
"""The operators that the capture adds to PyTorch's have no kernels."""
