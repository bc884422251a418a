"""Nodes that published symbolic functions write by these names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from sardonyx.aten.scalar_types import SCALAR_TYPES, dtype_of_name
from sardonyx.compat.function_helpers import _unimplemented
from sardonyx.compat.torch_onnx.jit_scalar_type import JitScalarType
from sardonyx.compat.type_helpers import _dtype_of, _get_tensor_rank
from sardonyx.compat.value_helpers import _get_const, _is_none, _is_value, _maybe_get_const
from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.values import SymbolicNode, SymbolicValue
from sardonyx.lower.onnx_types.schemas import onnx_dtype


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
    graph_context: GraphContext, opname: str, *inputs: Any, **options: Any
) -> tuple[Any, tuple[GraphContext, ...], SymbolicNode]:
    """`GraphContext.op_with_blocks`, under the name that symbolic functions with bodies call."""
    return graph_context.op_with_blocks(opname, *inputs, **options)
