"""What published symbolic functions call: `sardonyx.symbolic_helper`.

The names are those that users of symbolic functions know. Values are `SymbolicValue`s; a helper
that asks for what a value holds takes a plain Python value too, and gives it back.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import torch

from sardonyx.aten.scalar_types import (
    SCALAR_TYPES,
    dtype_of_name,
    scalar_type_name,
    scalar_type_number,
)
from sardonyx.compat.function_helpers import (
    _apply_params,
    _block_list_in_opset,
    _generate_wrapped_number,
    _is_onnx_constant,
    _is_split_static,
    _max_helper,
    _min_helper,
    _node_get,
    _op_with_optional_float_cast,
    _overload_by_arg_count,
)
from sardonyx.compat.held_values import (
    _DESCRIPTORS,
    _get_const,
    _held,
    _is_none,
    _is_value,
    _maybe_get_const,
    _parse_arg,
)
from sardonyx.compat.interpolation import (
    _get_interpolate_attributes,
    _interpolate_get_scales,
    _interpolate_get_scales_if_available,
    _interpolate_size_to_scales,
)
from sardonyx.compat.torch_onnx.jit_scalar_type import JitScalarType
from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.calls import exported_opset, note_reason
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.values import SymbolicNode, SymbolicValue
from sardonyx.lower.onnx_types.schemas import onnx_dtype
from sardonyx.lower.values import TORCH_TO_ONNX

logger = logging.getLogger("sardonyx")

Function = TypeVar("Function", bound=Callable[..., Any])

cast_pytorch_to_onnx: dict[str, int] = {
    scalar_type_name(dtype): int(TORCH_TO_ONNX[dtype])
    for dtype in SCALAR_TYPES
    if dtype in TORCH_TO_ONNX
}
"""ONNX's number of a dtype by TorchScript's name: `cast_pytorch_to_onnx["Float"]`."""
scalar_type_to_pytorch_type: list[torch.dtype | None] = list(SCALAR_TYPES)
"""The dtype of TorchScript's number of it."""
scalar_type_to_onnx: list[int | None] = [
    int(TORCH_TO_ONNX[dtype]) if dtype in TORCH_TO_ONNX else None for dtype in SCALAR_TYPES
]
"""ONNX's number of a dtype by TorchScript's number of it."""
scalar_name_to_pytorch = {t.torch_name(): t.scalar_name() for t in JitScalarType}
"""TorchScript's name of a dtype by C++'s: `scalar_name_to_pytorch["int64_t"]` is "Long"."""
pytorch_name_to_type = {
    t.scalar_name(): t.dtype() for t in JitScalarType if t is not JitScalarType.UNDEFINED
}
"""The dtype of TorchScript's name."""


class _Globals:
    """What the export that runs was asked for."""

    @property
    def export_onnx_opset_version(self) -> int:
        return exported_opset()


GLOBALS = _Globals()


def __getattr__(name: str) -> Any:
    if name == "_export_onnx_opset_version":
        return exported_opset()
    raise AttributeError(f"sardonyx.symbolic_helper has no {name!r}")


# -- arguments ------------------------------------------------------------------------------------


def parse_args(*arg_descriptors: str) -> Callable[[Function], Function]:
    """Unpack the arguments of a symbolic function, one letter for each after `g`.

    `v` leaves a value; `i`, `f`, `b`, `s` are a number, a bool, a string; `is` and `fs` lists of
    numbers; `t` a tensor; `none` nothing, or what an argument that is not used holds.
    """
    unknown = [d for d in arg_descriptors if d not in _DESCRIPTORS]
    if unknown:
        raise SymbolicFunctionError(
            f"parse_args: {unknown[0]!r} is none of {', '.join(sorted(_DESCRIPTORS))}"
        )

    def decorate(function: Function) -> Function:
        names = list(inspect.signature(function).parameters)[1:]

        @functools.wraps(function)
        def unpacking(g: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) > len(arg_descriptors):
                raise SymbolicFunctionError(
                    f"parse_args of {function.__name__} has {len(arg_descriptors)} letters for"
                    f" {len(args)} arguments"
                )
            described = dict(zip(names, arg_descriptors, strict=False))
            unpacked = [
                _parse_arg(a, d, name)
                for a, d, name in zip(
                    args, arg_descriptors, [*names, *[""] * len(args)], strict=False
                )
            ]
            named = {
                k: _parse_arg(a, described[k], k) if k in described else a
                for k, a in kwargs.items()
            }
            return function(g, *unpacked, **named)

        unpacking._arg_descriptors = arg_descriptors  # type: ignore[attr-defined]
        return unpacking  # type: ignore[return-value]

    return decorate


def _maybe_get_scalar(value: Any) -> Any:
    """The 0-d tensor that a value holds, the value itself if it holds none."""
    held = _maybe_get_const(value, "t") if not _is_none(value) else value
    return held if isinstance(held, torch.Tensor) and held.dim() == 0 else value


def _scalar(x: Any) -> Any:
    """A scalar tensor, or the value of one, as a Python number; None where it is none."""
    if _is_value(x):
        x = _held(x)
    if isinstance(x, torch.Tensor):
        return x.item() if x.numel() == 1 else None
    return x if isinstance(x, (bool, int, float, complex)) else None


def _if_scalar_type_as(*given: Any) -> Any:
    """A Python number as a tensor of another's dtype; a value stays as it is.

    Takes the number and the other value; some releases had the graph before them."""
    number, tensor = given[-2:]
    if _is_value(number):
        return number
    dtype = tensor.dtype
    return torch.tensor(number, dtype=dtype) if dtype is not None else torch.tensor(number)


def _unpack_list(list_value: SymbolicValue) -> list[SymbolicValue]:
    """The values that a list is made of."""
    if not list_value.is_list:
        raise SymbolicFunctionError(f"{list_value!r} is no list whose items are known")
    return list(list_value.content)


_unpack_tuple = _unpack_list


def _is_packed_list(list_value: Any) -> bool:
    return _is_value(list_value) and list_value.node().kind() == "prim::ListConstruct"


def _is_tuple_construct(x: Any) -> bool:
    return _is_value(x) and x.node().kind() in ("prim::ListConstruct", "prim::TupleConstruct")


# -- questions ------------------------------------------------------------------------------------


def _is_constant(value: Any) -> bool:
    """Whether what it holds is known: a Python value, or a constant of the graph."""
    return not _is_value(value) or value.node().kind() in ("onnx::Constant", "prim::Constant")


def _is_tensor(x: SymbolicValue) -> bool:
    return x.type().kind() == "TensorType"


def _is_list(x: SymbolicValue) -> bool:
    return x.type().kind() == "ListType"


def _is_tensor_list(x: SymbolicValue) -> bool:
    return _is_list(x) and x.type().getElementType().kind() == "TensorType"


def _is_scalar_list(x: SymbolicValue) -> bool:
    return _is_list(x) and x.type().getElementType().kind() in ("IntType", "FloatType", "BoolType")


def _dtype_of(value: Any) -> torch.dtype | None:
    if isinstance(value, torch.Tensor):
        return value.dtype
    if not _is_value(value):
        return torch.tensor(value).dtype if isinstance(value, (bool, int, float)) else None
    if value.is_python or value.is_computed_size:
        kinds = {"BoolType": torch.bool, "IntType": torch.int64, "FloatType": torch.float32}
        return kinds.get(value.type().kind())
    dtype: torch.dtype | None = value.dtype
    return dtype


def _is_fp(value: Any) -> bool:
    dtype = _dtype_of(value)
    return dtype is not None and dtype.is_floating_point


def _is_bool(value: Any) -> bool:
    return _dtype_of(value) == torch.bool


def _try_get_scalar_type(*args: Any) -> str | None:
    """TorchScript's name of the dtype of the first value that has one."""
    for value in args:
        dtype = _dtype_of(value)
        if dtype is not None:
            return scalar_type_name(dtype)
    return None


def _get_tensor_rank(x: SymbolicValue) -> int | None:
    return x.type().dim() if _is_value(x) and _is_tensor(x) else None


def _get_tensor_sizes(x: SymbolicValue, allow_nonstatic: bool = True) -> list[int | None] | None:
    """The sizes, None for those that are not numbers; None where the rank is not known."""
    if not _is_value(x) or not _is_tensor(x):
        return None
    sizes = x.type().sizes()
    return x.type().varyingSizes() if allow_nonstatic or sizes is None else list(sizes)


def _get_tensor_dim_size(tensor: SymbolicValue, dim: int) -> int | None:
    sizes = _get_tensor_sizes(tensor)
    return None if sizes is None else sizes[dim]


def is_complex_value(x: SymbolicValue) -> bool:
    dtype = _dtype_of(x)
    return dtype is not None and dtype.is_complex


def args_have_same_dtype(args: Sequence[Any]) -> bool:
    return len({_dtype_of(arg) for arg in args}) == 1


def _type_promote_from_values(*args: Any) -> JitScalarType:
    """The scalar type that PyTorch computes these in."""
    dtypes = [dtype for arg in args if (dtype := _dtype_of(arg)) is not None]
    if not dtypes:
        return JitScalarType.UNDEFINED
    return JitScalarType.from_dtype(functools.reduce(torch.promote_types, dtypes))


def check_training_mode(op_train_mode: int, op_name: str) -> None:
    """Nothing to check: the operators of a graph are of the mode that the model is exported in."""


# -- refusals -------------------------------------------------------------------------------------


def _unimplemented(op: str, msg: str, value: SymbolicValue | None = None) -> None:
    """Say that the operator cannot be converted; return its result, None."""
    reason = f"{op}: {msg}"
    logger.warning("ONNX export failed on %s because %s is not supported", op, msg)
    note_reason(reason)


def _onnx_unsupported(op_name: str, value: SymbolicValue | None = None) -> NoReturn:
    raise SymbolicFunctionError(f"{op_name} is not supported")


def _onnx_opset_unsupported(
    op_name: str, current_opset: int, supported_opset: int, value: SymbolicValue | None = None
) -> NoReturn:
    raise SymbolicFunctionError(
        f"{op_name} is not supported at opset {current_opset}: opset {supported_opset} has it"
    )


def _onnx_opset_unsupported_detailed(
    op_name: str,
    current_opset: int,
    supported_opset: int,
    reason: str,
    value: SymbolicValue | None = None,
) -> NoReturn:
    raise SymbolicFunctionError(
        f"{op_name} is not supported at opset {current_opset}: {reason}; opset {supported_opset}"
        " has it"
    )


# -- nodes ----------------------------------------------------------------------------------------


def _constant(g: GraphContext, tensor: torch.Tensor) -> SymbolicValue:
    return g.op("Constant", value_t=tensor)


def _ints(g: GraphContext, numbers: Sequence[int]) -> SymbolicValue:
    return _constant(g, torch.tensor(list(numbers), dtype=torch.int64))


def _reshape_helper(
    g: GraphContext, input: SymbolicValue, shape: Any, allowzero: int = 0
) -> SymbolicValue:
    shape = _maybe_get_const(shape, "is")
    if isinstance(shape, (list, tuple)) and all(isinstance(s, int) for s in shape):
        shape = _ints(g, shape)
    return g.op("Reshape", input, shape, allowzero_i=allowzero or None)


def _squeeze_helper(g: GraphContext, input: SymbolicValue, axes_i: Sequence[int]) -> SymbolicValue:
    return g.op("Squeeze", input, axes_i=list(axes_i))


def _unsqueeze_helper(
    g: GraphContext, input: SymbolicValue, axes_i: Sequence[int]
) -> SymbolicValue:
    return g.op("Unsqueeze", input, axes_i=list(axes_i))


def _reducesum_helper(
    g: GraphContext,
    input: SymbolicValue,
    axes_i: Sequence[int] | None = None,
    keepdims_i: int = 1,
    noop_with_empty_axes_i: int = 0,
) -> SymbolicValue:
    noop = noop_with_empty_axes_i if g.opset >= 13 else None
    return g.op(
        "ReduceSum",
        input,
        axes_i=list(axes_i) if axes_i else None,
        keepdims_i=keepdims_i,
        noop_with_empty_axes_i=noop,
    )


def _slice_helper(
    g: GraphContext,
    input: SymbolicValue,
    axes: Any,
    starts: Any,
    ends: Any,
    steps: Any = None,
) -> SymbolicValue:
    if g.opset < 10:
        axes, starts, ends = (_get_const(bound, "is") for bound in (axes, starts, ends))
        return g.op("Slice", input, axes_i=axes, starts_i=starts, ends_i=ends)
    given = [starts, ends, axes, steps]
    return g.op("Slice", input, *(v if v is None else _positions(g, v) for v in given))


def _positions(g: GraphContext, given: Any) -> Any:
    """Positions along axes as a tensor of one dim."""
    if isinstance(given, (list, tuple)):
        return _ints(g, [int(v) for v in given]) if not any(map(_is_value, given)) else given
    if isinstance(given, int):
        return _ints(g, [given])
    if isinstance(given, torch.Tensor):
        return _constant(g, given.reshape(-1).to(torch.int64))
    if _is_value(given) and not given.is_list and given.type().dim() in (0, None):
        if given.is_python:
            return _ints(g, [given.content])
        if given.is_computed_size or given.type().dim() == 0:
            return _unsqueeze_helper(g, g.values.of_tensor(g.as_tensor(given)), [0])
    return given


def _select_helper(
    g: GraphContext, self: SymbolicValue, dim: int, index: Any, apply_reshape: bool = True
) -> SymbolicValue:
    """The entries at `index` along `dim`; one index drops the dim, or keeps it as 1."""
    held = _maybe_get_const(index, "t") if not isinstance(index, int) else torch.tensor(index)
    if isinstance(held, torch.Tensor):
        index = held.reshape(-1) if apply_reshape and held.dim() == 0 else held
        index = _constant(g, index.to(torch.int64))
    elif _get_tensor_rank(index) == 0 and apply_reshape:
        index = _reshape_helper(g, index, [1])
    if _dtype_of(index) not in (torch.int64, torch.int32):
        index = g.op("Cast", index, to_i=int(onnx_dtype(torch.int64)))
    return g.op("Gather", self, index, axis_i=dim)


def _cast_helper(g: GraphContext, input: SymbolicValue, to: Any) -> SymbolicValue:
    """The value in another dtype: a torch.dtype, TorchScript's number or name of one."""
    to = _get_const(to, "i") if _is_value(to) else to
    if isinstance(to, str):
        dtype = dtype_of_name(to)
    else:
        dtype = to if isinstance(to, torch.dtype) else SCALAR_TYPES[to]
    if dtype is None:
        raise SymbolicFunctionError(f"{to!r} is no dtype")
    if input.dtype == dtype:
        return input
    held = input.content if input.is_python else input.const
    if isinstance(held, (bool, int, float, torch.Tensor)):
        return _constant(g, torch.as_tensor(held).to(dtype))
    return g.op("Cast", input, to_i=int(onnx_dtype(dtype)))


def _size_helper(g: GraphContext, self: SymbolicValue, dim: Any) -> SymbolicValue:
    """One size of a tensor, as a 0-d tensor."""
    shape = g.op("Shape", self)
    return g.op("Gather", shape, torch.tensor(_get_const(dim, "i")), axis_i=0)


def _topk_helper(
    g: GraphContext,
    input: SymbolicValue,
    k: Any,
    dim: int,
    largest: bool = True,
    sorted: bool = False,
    out: Any = None,
) -> tuple[SymbolicValue, SymbolicValue]:
    if not _is_none(out):
        raise SymbolicFunctionError("TopK has no out parameter")
    count = _maybe_get_const(k, "i")
    count = _ints(g, [count]) if isinstance(count, int) else _reshape_helper(g, k, [1])
    made: tuple[SymbolicValue, SymbolicValue] = g.op(
        "TopK", input, count, axis_i=dim, largest_i=int(largest), sorted_i=int(sorted), outputs=2
    )
    return made


def _flatten_helper(
    g: GraphContext, input: SymbolicValue, start_dim: int, end_dim: int, dim: int
) -> SymbolicValue:
    """Axes `start_dim` to `end_dim` of a tensor of `dim` axes as one."""
    end_dim %= max(dim, 1)
    sizes = g.op("Shape", input)
    parts = [
        _slice_helper(g, sizes, [0], [0], [start_dim]) if start_dim else None,
        _ints(g, [-1]),
        _slice_helper(g, sizes, [0], [end_dim + 1], [dim]) if end_dim < dim - 1 else None,
    ]
    shape = g.op("Concat", *(p for p in parts if p is not None), axis_i=0)
    return _reshape_helper(g, input, shape)


def _maybe_cast_to_type(
    g: GraphContext, value: SymbolicValue, jit_type: JitScalarType
) -> SymbolicValue:
    return _cast_helper(g, value, jit_type.dtype())


def _numel_helper(g: GraphContext, self: SymbolicValue) -> SymbolicValue:
    return g.op("Size", self)


def _lt_helper(g: GraphContext, input: Any, other: Any) -> SymbolicValue:
    return g.op("Less", input, other)


def _scatter_helper(
    g: GraphContext, self: SymbolicValue, dim: Any, index: Any, src: Any
) -> SymbolicValue:
    return g.op("ScatterElements", self, index, src, axis_i=_get_const(dim, "i"))


def _argmin_argmax_helper(
    g: GraphContext, input: SymbolicValue, dim: Any, keepdim: bool, op_name: str
) -> SymbolicValue:
    """The position of the first of the extremes, along a dim or of all elements."""
    if _is_none(dim):
        flat = _reshape_helper(g, input, [-1])
        made = g.op(op_name, flat, axis_i=0, keepdims_i=0)
        rank = _get_tensor_rank(input)
        return _reshape_helper(g, made, [1] * rank) if keepdim and rank is not None else made
    return g.op(op_name, input, axis_i=_get_const(dim, "i"), keepdims_i=int(keepdim))


def _sort_helper(
    g: GraphContext, input: SymbolicValue, dim: Any, descending: Any = True, out: Any = None
) -> tuple[SymbolicValue, SymbolicValue]:
    axis = _get_const(dim, "i")
    count = g.op("Gather", g.op("Shape", input), torch.tensor([axis]), axis_i=0)
    largest = bool(_get_const(descending, "b"))
    return _topk_helper(g, input, count, axis, largest=largest, sorted=True, out=out)


def _unbind_helper(
    g: GraphContext, self: SymbolicValue, dim: Any, _outputs: int | None = None
) -> Any:
    """The slices along `dim`: so many values, or a sequence where their number is not said."""
    axis = _get_const(dim, "i")
    if _outputs is None:
        return g.op("SplitToSequence", self, None, axis_i=axis, keepdims_i=0)
    places = [torch.tensor(index) for index in range(_outputs)]
    return [g.op("Gather", self, place, axis_i=axis) for place in places]


def _avgpool_helper(
    tuple_fn: Callable[[Any], Sequence[int]],
    padding: int | Sequence[int],
    kernel_size: Any,
    stride: Any,
    divisor_override: Any,
    name: str,
) -> tuple[int, ...]:
    """The padding, one number for each dim of the image."""
    if not _is_none(divisor_override) and divisor_override:
        _unimplemented(name, "divisor_override")
    return tuple(tuple_fn(padding))


def _optional_input_placeholder_tensor(g: GraphContext) -> SymbolicValue:
    """An input that is left out."""
    return SymbolicValue.of_python(g.values, None)


def _add_op_with_blocks(
    graph_context: GraphContext,
    opname: str,
    *inputs: Any,
    outputs: int = 1,
    n_blocks: int = 1,
    **attributes: Any,
) -> tuple[Any, tuple[GraphContext, ...], SymbolicNode]:
    """`GraphContext.op_with_blocks`, under the name that symbolic functions with bodies call."""
    return graph_context.op_with_blocks(
        opname, *inputs, outputs=outputs, n_blocks=n_blocks, **attributes
    )


# -- quantized tensors ----------------------------------------------------------------------------


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


__all__ = [
    "GLOBALS",
    "SymbolicFunctionError",
    "_apply_params",
    "_block_list_in_opset",
    "_generate_wrapped_number",
    "_get_const",
    "_get_interpolate_attributes",
    "_interpolate_get_scales",
    "_interpolate_get_scales_if_available",
    "_interpolate_size_to_scales",
    "_is_none",
    "_is_onnx_constant",
    "_is_split_static",
    "_is_value",
    "_max_helper",
    "_maybe_get_const",
    "_min_helper",
    "_node_get",
    "_op_with_optional_float_cast",
    "_overload_by_arg_count",
    "_parse_arg",
    "args_have_same_dtype",
    "cast_pytorch_to_onnx",
    "check_training_mode",
    "dequantize_helper",
    "is_complex_value",
    "parse_args",
    "pytorch_name_to_type",
    "quantize_helper",
    "quantized_args",
    "requantize_bias_helper",
    "scalar_name_to_pytorch",
    "scalar_type_number",
    "scalar_type_to_onnx",
    "scalar_type_to_pytorch_type",
]
