"""Constants of four bits that arithmetic dequantizes: blocked DequantizeLinear of INT4 or UINT4,
which spends half a byte on each. The integers are computed when they are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnx.reference import ReferenceEvaluator

from sardonyx.lower.onnx_types.legality import schema_of
from sardonyx.lower.values import ONNX_TO_TORCH
from sardonyx.optimize.facts import constant_ints, constant_tensor, draws
from sardonyx.optimize.fold_batch_norm import set_contents
from sardonyx.optimize.rewrite import NodePass, bypass, insert_constant
from sardonyx.optimize.tensor_identity import has_data

_RANGES = {ir.DataType.INT4: (-8, 7), ir.DataType.UINT4: (0, 15)}
_SMALL = 1024
"""Elements that are not worth it."""


class PackInt4(NodePass):
    """Writes `(Cast(integers) - zero_point) * scale` as one node."""

    op_types = frozenset({"Mul"})

    def rewrite(self, node: ir.Node, source: ir.Value) -> bool:
        graph = node.graph
        schema = schema_of("DequantizeLinear", graph.opset_imports.get("", 1)) if graph else None
        has_kernel = source.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16)
        if schema is None or "block_size" not in schema.attributes or not has_kernel:
            return False
        return any(_pack(node, *inputs) for inputs in (node.inputs, node.inputs[::-1]))


def _pack(node: ir.Node, real: ir.Value | None, scale: ir.Value | None) -> bool:
    shift = _made_by(real, "Sub")
    number, zero = shift.inputs if shift else (real, None)
    read = [shift.outputs[0]] if shift else []
    integers = _cast_integers(number, read)
    if integers is None or number is None or scale is None:
        return False
    known = [v.shape.numpy() for v in (number, scale) if v.shape and v.shape.is_static()]
    if len(known) < 2 or np.prod(known[0]) <= _SMALL:
        return False
    compute, compute_zero = _computed(integers, read), zero and _computed(zero, [])
    readers = {node, *(value.producer() for value in read)}
    held = next((value for value in read if value.is_initializer()), None)
    is_alone = all(use.node in readers for value in read for use in value.uses())
    shape, steps = map(list, known)
    steps = [1] * (len(shape) - len(steps)) + steps
    shared = [axis for axis, count in enumerate(shape) if steps[axis] == 1 < count]
    # ONNX Runtime fuses MatMul with weights in blocks of another axis, and rounds what they meet.
    if compute is None or held is None or not is_alone or shared != [len(shape) - 1]:
        return False
    zeros = compute_zero() if compute_zero else np.zeros(1)
    if (zero and not compute_zero) or np.broadcast_shapes(steps, zeros.shape) != tuple(steps):
        return False
    dtype = next((d for d in _RANGES if _fits(compute(), d) and _fits(zeros, d)), None)
    if dtype is None or node.outputs[0].shape != number.shape:
        return False
    axis, block, zeros = shared[0], shape[-1], np.broadcast_to(zeros, steps)
    if axis and _is_only_reshaped(node.outputs[0]):  # blocks of the dim that they are cut from
        axis -= 1
        shape[axis:] = [shape[axis] * block]
        steps.pop()

    def packed() -> torch.Tensor:
        values = torch.from_numpy(compute().astype(np.uint8).reshape(shape))
        return (values & 15).view(ONNX_TO_TORCH[dtype])

    set_contents(held, dtype, shape, packed)
    size = insert_constant(ir.tensor(np.array(steps, np.int64)), None, before=node)
    reshape = ir.node("Reshape", [scale, size], metadata_props=dict(node.metadata_props))
    given = [held, *reshape.outputs]
    given[1].type, given[1].shape = scale.type, ir.Shape(steps)
    if zeros.any():
        points = ir.Tensor(zeros.reshape(steps).astype(dtype.numpy()), dtype=dtype)
        given.append(insert_constant(points, None, before=node))
    attributes = {"axis": axis, "block_size": block}
    made = ir.node("DequantizeLinear", given, attributes, metadata_props=reshape.metadata_props)
    made.outputs[0].type, made.outputs[0].shape = scale.type, ir.Shape(shape)
    assert node.graph is not None
    node.graph.insert_before(node, [reshape, made])
    return bypass(node, made.outputs[0])


def _made_by(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type in op_types and not node.domain else None


def _cast_integers(value: ir.Value | None, read: list[ir.Value]) -> ir.Value | None:
    """The integers that numbers are, in the same order; `read` gets the values between them."""
    while node := _made_by(value, "Cast", "Reshape", "Squeeze", "Unsqueeze"):
        read.append(node.outputs[0])
        value = node.inputs[0]
        if value is not None and value.dtype is not None and value.dtype.is_integer():
            return value
    return None


def _fits(numbers: Any, dtype: ir.DataType) -> bool:
    low, high = _RANGES[dtype]
    fits = numbers.size and low <= numbers.min() and numbers.max() <= high
    return bool(fits and (numbers.dtype.kind in "iu" or (numbers == np.rint(numbers)).all()))


def _is_only_reshaped(value: ir.Value) -> bool:
    nodes = [use.node for use in value.uses()]
    return not value.is_graph_output() and all(
        node.op_type == "Reshape" and 0 not in (constant_ints(node.inputs[1]) or [0])
        for node in nodes
    )


def _computed(value: ir.Value, read: list[ir.Value]) -> Callable[[], Any] | None:
    """Computes a value that only constants decide; `read` gets it and the values it is made of."""
    tensor = constant_tensor(value)
    if tensor is not None:
        read += [value] if value.is_initializer() else []
        return tensor.numpy if has_data(tensor) else None
    node = value.producer()
    if node is None or node.domain or draws(node) or len(node.outputs) > 1 or not node.inputs:
        return None
    read.append(value)
    inputs = [given and _computed(given, read) for given in node.inputs]
    if None in inputs or any(a.type == ir.AttributeType.GRAPH for a in node.attributes.values()):
        return None
    names = [str(index) for index in range(len(inputs))]
    alone = ir.node(node.op_type, [ir.Value(name=name) for name in names], node.attributes)
    alone.outputs[0].name = "result"
    return partial(_run, ReferenceEvaluator(ir.to_proto(alone)), names, inputs)


def _run(evaluator: Any, names: list[str], inputs: list[Any]) -> Any:
    return evaluator.run(None, {n: given() for n, given in zip(names, inputs, strict=True)})[0]
