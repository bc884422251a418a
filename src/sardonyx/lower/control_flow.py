"""Branches and loops of the graph as If and Loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import onnx_ir as ir
import torch

from sardonyx.aten.control_flow import BRANCH
from sardonyx.aten.graph import Argument, Block, Node, TensorType, Value
from sardonyx.errors import InternalError
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.loops import body_input
from sardonyx.lower.values import Tensor

EmitBlock = Callable[[Block], list[Any]]
"""Writes the nodes of a block where the builder is, and gives what the block returns: tensors,
numbers, None."""
DeclareInput = Callable[[Value, Tensor], None]
"""Tells the emitter which tensor the input of a block is."""


def emit_control_flow(
    b: Builder, node: Node, arguments: dict[str, Any], emit_block: EmitBlock, declare: DeclareInput
) -> list[Tensor]:
    if node.op is BRANCH:
        return _branch(b, node, arguments["condition"], emit_block)
    return _loop(b, node, arguments, emit_block, declare)


def _branch(b: Builder, node: Node, condition: Tensor, emit_block: EmitBlock) -> list[Tensor]:
    then, otherwise = (
        _body(b, [], partial(emit_block, block), node.outputs, name)
        for block, name in zip(node.blocks, ("then", "else"), strict=True)
    )
    b.location = node.location
    made = b.If(
        _truth(b, condition),
        outputs=len(node.outputs),
        then_branch=then,
        else_branch=otherwise,
    )
    return _typed(b, made, node.outputs)


def _loop(
    b: Builder,
    node: Node,
    arguments: dict[str, Any],
    emit_block: EmitBlock,
    declare: DeclareInput,
) -> list[Tensor]:
    (block,) = node.blocks
    count, condition = arguments["count"], arguments["condition"]
    limit = None if count is None else b.scalar(count, torch.int64)
    inputs = [_input(b, value, declare) for value in block.inputs]
    going = body_input(b, f"{inputs[0].value.name}_goes_on", torch.bool, ())

    def results() -> list[Any]:
        again, *rest = emit_block(block)
        return [b.Identity(going) if again is None else _truth(b, again), *rest]

    carried = [b.cast(t, i.dtype) for t, i in zip(arguments["carried"], inputs[1:], strict=True)]
    expected = [Value("goes_on", TensorType(torch.bool, ())), *node.outputs]
    body = _body(b, [inputs[0], going, *inputs[1:]], results, expected, "body")
    first = _truth(b, True if condition is None else condition)
    b.location = node.location
    made = b.Loop(limit, first, *carried, outputs=len(node.outputs), body=body)
    return _typed(b, made, node.outputs)


def _input(b: Builder, value: Value, declare: DeclareInput) -> Tensor:
    tensor = b.declare(_like(ir.Value(name=value.name), value))
    declare(value, tensor)
    return tensor


def _like(made: ir.Value, value: Value) -> Tensor:
    shape = value.shape if value.has_shape else None
    return Tensor(made, value.dtype, shape, is_sequence=value.is_sequence)


def _body(
    b: Builder,
    inputs: Sequence[Tensor],
    results: Callable[[], list[Any]],
    expected: Sequence[Value],
    name: str,
) -> ir.Graph:
    with b.body() as nodes:
        given = results()
        if len(given) != len(expected):
            raise InternalError(f"a block gives {len(given)} results, {len(expected)} are read")
        outputs: list[ir.Value] = []
        for result, value in zip(given, expected, strict=True):
            tensor = result if isinstance(result, Tensor) else b.scalar(result, value.dtype)
            tensor = b.cast(tensor, value.dtype)
            producer = tensor.value.producer()
            if producer not in nodes or tensor.value in outputs or producer.op_type == "Constant":
                tensor = _identity(b, tensor)
            outputs.append(tensor.value)
        return ir.Graph([t.value for t in inputs], outputs, nodes=nodes, name=name)


def _identity(b: Builder, tensor: Tensor) -> Tensor:
    made = b.Identity(tensor)
    return b.declare(Tensor(made.value, tensor.dtype, tensor.shape, is_sequence=tensor.is_sequence))


def _truth(b: Builder, condition: Argument) -> Tensor:
    tensor = condition if isinstance(condition, Tensor) else b.scalar(condition)
    tensor = b.cast(tensor, torch.bool)
    return tensor if tensor.rank == 0 else b.reshape(tensor, [])


def _typed(b: Builder, tensors: Sequence[Tensor], values: Sequence[Value]) -> list[Tensor]:
    return [
        b.declare(_like(tensor.value, value)) for tensor, value in zip(tensors, values, strict=True)
    ]
