"""Quantized tensors in symbolic functions: tuples of integers, scale, zero point and axis."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from sardonyx.compat.node_helpers import _cast_helper, _constant
from sardonyx.compat.value_helpers import _get_const, _is_none, _is_value
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.values import SymbolicValue
from sardonyx.lower.onnx_types.schemas import onnx_dtype

Function = TypeVar("Function", bound=Callable[..., Any])


def quantized_args(
    *arg_q_descriptors: bool,
    scale: float | None = None,
    zero_point: int | None = None,
    quantize_output: bool = True,
) -> Callable[[Function], Function]:
    """Let a symbolic function of real numbers serve quantized ones.

    True for each argument that may be quantized: such a one is dequantized before the function, and
    the result is quantized by `scale` and `zero_point`, or else as the first of them was; it stays
    a real number where `quantize_output` is False.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def dequantizing(g: GraphContext, *args: Any, **kwargs: Any) -> Any:
            marked = [*arg_q_descriptors, *[False] * len(args)]
            quantized = [m and _is_quantized(a) for m, a in zip(marked, args, strict=False)]
            if not any(quantized):
                return function(g, *args, **kwargs)
            first = args[quantized.index(True)]
            plain = [
                dequantize_helper(g, a)[0] if is_quantized else a
                for is_quantized, a in zip(quantized, args, strict=True)
            ]
            result = function(g, *plain, **kwargs)
            if not quantize_output:
                return result
            _, by_scale, by_zero, _ = _unpack_quantized_tensor(first)
            if scale is not None:
                by_scale = _constant(g, torch.tensor(scale))
            if zero_point is not None:
                by_zero = _constant(g, torch.tensor(zero_point))
            return quantize_helper(g, result, by_scale, by_zero)

        return dequantizing  # type: ignore[return-value]

    return decorate


def _is_quantized(value: Any) -> bool:
    return _is_value(value) and value.type().kind() == "TupleType"


def _unpack_quantized_tensor(
    tuple_value: SymbolicValue,
) -> tuple[SymbolicValue, SymbolicValue, SymbolicValue, Any]:
    """The integers, the scale, the zero point and the axis of a quantized value."""
    tensor, scale, zero_point, *axis = tuple_value.content
    return tensor, scale, zero_point, axis[0] if axis else None


def dequantize_helper(
    g: GraphContext, qtensor: SymbolicValue, qdtype: Any = None
) -> tuple[SymbolicValue, SymbolicValue, SymbolicValue, Any]:
    """The real numbers of a quantized value, its scale, zero point and axis."""
    tensor, scale, zero_point, axis = _unpack_quantized_tensor(qtensor)
    scale = _cast_helper(g, scale, torch.float32)
    zero_point = _cast_helper(g, zero_point, tensor.dtype or torch.uint8)
    axis_i = None if _is_none(axis) else _get_const(axis, "i")
    real = g.op("DequantizeLinear", tensor, scale, zero_point, axis_i=axis_i)
    return real, scale, zero_point, axis


def quantize_helper(
    g: GraphContext,
    tensor: SymbolicValue,
    scale: SymbolicValue,
    zero_point: SymbolicValue,
    axis: SymbolicValue | None = None,
) -> SymbolicValue:
    """A quantized value of real numbers."""
    scale = _cast_helper(g, scale, torch.float32)
    if zero_point.dtype not in (torch.uint8, torch.int8):
        zero_point = _cast_helper(g, zero_point, torch.uint8)
    axis_i = None if axis is None or _is_none(axis) else _get_const(axis, "i")
    integers = g.op("QuantizeLinear", tensor, scale, zero_point, axis_i=axis_i)
    parts = [integers, scale, zero_point, *([] if axis is None else [axis])]
    return g.values.of_tuple(parts)


def requantize_bias_helper(
    g: GraphContext,
    bias: SymbolicValue,
    input_scale: SymbolicValue,
    weight_scale: SymbolicValue,
    axis: SymbolicValue | None = None,
) -> SymbolicValue:
    """A bias of real numbers as the quantized value of int32 that kernels add to products: its
    scale is the product of those of the input and the weight, its zero point 0."""
    scale = g.op("Mul", weight_scale, input_scale)
    steps = g.op("Div", bias, scale)
    steps = g.op("Round", steps) if g.opset >= 11 else g.op("Floor", g.op("Add", steps, 0.5))
    integers = g.op("Cast", steps, to_i=int(onnx_dtype(torch.int32)))
    zeros = g.op("ConstantOfShape", g.op("Shape", scale), value_t=torch.zeros(1, dtype=torch.int32))
    return g.values.of_tuple([integers, scale, zeros, *([] if axis is None else [axis])])
