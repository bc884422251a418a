"""What symbolic functions are made and chosen by, and pairs of results; under the names that
published ones know."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import torch

from sardonyx.compat.value_helpers import _get_const, _is_none
from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.calls import note_reason
from sardonyx.extend.symbolic_functions.graph_context import GraphContext
from sardonyx.extend.symbolic_functions.values import SymbolicNode, SymbolicValue
from sardonyx.lower.onnx_types.schemas import onnx_dtype

logger = logging.getLogger("sardonyx")
Made = TypeVar("Made")


def _overload_by_arg_count(fn: Callable[..., Sequence[Callable[..., Any]]]) -> Callable[..., Any]:
    """A symbolic function by several of `parse_args`, which `fn` lists: the one that has a letter
    for each argument."""

    @functools.wraps(fn)
    def chosen(g: GraphContext, *args: Any) -> Any:
        for overload in fn(g, *args):
            if len(getattr(overload, "_arg_descriptors", ())) == len(args):
                return overload(g, *args)
        note_reason(f"aten::{fn.__name__}: with {len(args)} arguments")
        return None

    return chosen


def _apply_params(*args: Any, **kwargs: Any) -> Callable[[Callable[..., Made]], Made]:
    """A decorator that puts what a function gives for these in its place."""
    return lambda function: function(*args, **kwargs)


def _block_list_in_opset(name: str) -> Callable[..., NoReturn]:
    """A symbolic function for an operator that is not to be exported."""

    def blocked(*args: Any, **kwargs: Any) -> NoReturn:
        raise SymbolicFunctionError(f"{name} is not supported at this opset")

    return blocked


def _is_onnx_constant(value: SymbolicValue) -> bool:
    return value.node().kind() == "onnx::Constant"


def _node_get(node: SymbolicNode, key: str) -> Any:
    """An attribute of a node."""
    return node[key]


def _is_split_static(split_size_or_sizes: SymbolicValue, _outputs: int | None) -> bool:
    """Whether it is known now into how many parts of which sizes a tensor is split."""
    if _outputs is None or split_size_or_sizes.is_computed_size:
        return False
    if split_size_or_sizes.is_list:
        return all(item.is_python for item in split_size_or_sizes.content)
    return split_size_or_sizes.is_python or split_size_or_sizes.const is not None


def _max_helper(
    g: GraphContext, self: SymbolicValue, dim_or_y: Any = None, keepdim: Any = None
) -> Any:
    """`torch.max` of a tensor, of two, or along a dim with the places."""
    return _extreme(g, "Max", self, dim_or_y, keepdim)


def _min_helper(
    g: GraphContext, self: SymbolicValue, dim_or_y: Any = None, keepdim: Any = None
) -> Any:
    """`torch.min` of a tensor, of two, or along a dim with the places."""
    return _extreme(g, "Min", self, dim_or_y, keepdim)


def _extreme(g: GraphContext, which: str, self: SymbolicValue, dim_or_y: Any, keepdim: Any) -> Any:
    if _is_none(dim_or_y) and _is_none(keepdim):
        return g.op(f"Reduce{which}", self, keepdims_i=0)
    if _is_none(keepdim):
        return g.op(which, self, dim_or_y)
    keeps, dim = int(_get_const(keepdim, "b")), _get_const(dim_or_y, "i")
    values = g.op(f"Reduce{which}", self, axes_i=[dim], keepdims_i=keeps)
    return values, g.op(f"Arg{which}", self, axis_i=dim, keepdims_i=keeps)


def _op_with_optional_float_cast(
    g: GraphContext, op_name: str, *args: Any, **kwargs: Any
) -> SymbolicValue:
    """A node on floats where the operator takes integers only from `opset_before` on: cast, and
    back. `target_float_t` is the dtype; if it is not given, one that holds such integers: float64
    where they have 32 bits or more."""
    opset_before = kwargs.pop("opset_before", None)
    before: torch.dtype | None = args[0].dtype
    holding = torch.float64 if before is not None and before.itemsize > 2 else torch.float32
    wanted = kwargs.pop("target_float_t", holding)
    dtype = wanted if isinstance(wanted, torch.dtype) else wanted.dtype()
    floats = before is None or before.is_floating_point
    if floats or (opset_before is not None and g.opset >= opset_before):
        made: SymbolicValue = g.op(op_name, *args, **kwargs)
        return made
    number = int(onnx_dtype(dtype))
    cast = [
        g.op("Cast", value, to_i=number)
        if isinstance(value, SymbolicValue) and value.dtype == before
        else value
        for value in args
    ]
    assert before is not None
    return g.op("Cast", g.op(op_name, *cast, **kwargs), to_i=int(onnx_dtype(before)))


def _generate_wrapped_number(g: GraphContext, scalar: Any) -> Any:
    """A Python number as a constant that takes the dtype of what it meets."""
    if isinstance(scalar, SymbolicValue):
        return scalar
    if not isinstance(scalar, (bool, int, float)):
        raise SymbolicFunctionError(f"{scalar!r} is no number")
    return g.op("Constant", value_t=torch.tensor(scalar))


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
