"""Opset 12 to 11."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from sardonyx.legalize.boundary import Boundary, InexpressibleError
from sardonyx.legalize.emitter import Emitter, constant_of, input_of, required_input
from sardonyx.legalize.rewrites.index_arithmetic import larger, smaller

BOUNDARY = Boundary(11, functions=["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
_POWERS_SPELLED_OUT = (1, 2, 3, 4)


def _is_integer(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_integer()


@BOUNDARY.rewrite("Max", "Min")
def extreme(b: Emitter, node: ir.Node) -> ir.Value | None:
    inputs = [required_input(node, index) for index in range(len(node.inputs))]
    if not _is_integer(inputs[0]):
        return None
    choose = larger if node.op_type == "Max" else smaller
    return functools.reduce(lambda x, y: choose(b, x, y), inputs)


@BOUNDARY.rewrite("Clip")
def clip(b: Emitter, node: ir.Node) -> ir.Value | None:
    x, low, high = required_input(node, 0), input_of(node, 1), input_of(node, 2)
    if not _is_integer(x):
        return None
    if low is not None:
        x = larger(b, x, low)
    return x if high is None else smaller(b, x, high)


@BOUNDARY.rewrite("GreaterOrEqual", "LessOrEqual")
def ordered(b: Emitter, node: ir.Node) -> ir.Value:
    x, y = required_input(node, 0), required_input(node, 1)
    strict, opposite = (
        ("Greater", "Less") if node.op_type == "GreaterOrEqual" else ("Less", "Greater")
    )
    if _is_integer(x):
        return b.Not(b.node(opposite, [x, y])[0])
    return b.Or(b.node(strict, [x, y])[0], b.Equal(x, y))


@BOUNDARY.rewrite("Celu")
def celu(b: Emitter, node: ir.Node) -> ir.Value:
    x, alpha = required_input(node, 0), node.attributes.get_float("alpha", 1.0)
    factor = b.const_like(alpha, like=x)
    return b.Mul(b.Elu(b.Div(x, factor), alpha=1.0), factor)


@BOUNDARY.rewrite("Constant")
def constant(b: Emitter, node: ir.Node) -> ir.Value | None:
    for name, dtype in (
        ("value_int", ir.DataType.INT64),
        ("value_ints", ir.DataType.INT64),
        ("value_float", ir.DataType.FLOAT),
        ("value_floats", ir.DataType.FLOAT),
    ):
        if name in node.attributes:
            return b.const(np.array(node.attributes[name].value, dtype=dtype.numpy()), dtype)
    return None


@BOUNDARY.rewrite("Dropout")
def dropout(b: Emitter, node: ir.Node) -> Sequence[ir.Value]:
    x, ratio, training = required_input(node, 0), input_of(node, 1), input_of(node, 2)
    is_training = False if training is None else constant_of(training)
    if is_training is None:
        raise InexpressibleError("whether it is in training is computed by the model")
    if not is_training:
        everything = ir.tensor([True])
        kept = [] if len(node.outputs) == 1 else [b.ConstantOfShape(b.Shape(x), value=everything)]
        return [b.Identity(x), *kept]
    chance = b.const_like(0.5, like=x) if ratio is None else b.cast(ratio, x.dtype)
    seed = node.attributes.get("seed")
    drawn = b.RandomUniformLike(x, seed=None if seed is None else float(seed.as_int()))
    mask = b.Not(b.Less(drawn, chance))
    scaled = b.Div(x, b.Sub(b.const_like(1.0, like=x), chance))
    return [b.Where(mask, scaled, b.const_like(0.0, like=x)), mask][: len(node.outputs)]


@BOUNDARY.rewrite("Pow")
def power(b: Emitter, node: ir.Node) -> ir.Value | None:
    x, exponent = required_input(node, 0), required_input(node, 1)
    if x.dtype is None or exponent.dtype is None:
        return None
    if not _is_integer(x):
        if x.dtype == exponent.dtype:
            return None
        wide = ir.DataType.DOUBLE if exponent.dtype == ir.DataType.DOUBLE else x.dtype
    else:
        times = constant_of(exponent)
        if times is not None and times.ndim == 0 and times in _POWERS_SPELLED_OUT:
            return functools.reduce(b.Mul, [x] * int(times))
        wide = ir.DataType.DOUBLE  # as runtimes compute powers of integers
    return b.cast(b.Pow(b.cast(x, wide), b.cast(exponent, wide)), x.dtype)
