"""What is known of the type of a value, under the names that published symbolic functions know."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from sardonyx.aten.scalar_types import scalar_type_name
from sardonyx.compat.torch_onnx.jit_scalar_type import JitScalarType
from sardonyx.compat.value_helpers import _is_value
from sardonyx.extend.symbolic_functions.values import SymbolicValue


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
