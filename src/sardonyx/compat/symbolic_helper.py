"""What published symbolic functions call: `sardonyx.symbolic_helper`.

The names are those that users of symbolic functions know. Values are `SymbolicValue`s; a helper
that reads what a value holds takes a plain Python value too, and returns it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from sardonyx.aten.scalar_types import SCALAR_TYPES, scalar_type_name
from sardonyx.compat import (
    function_helpers,
    interpolation,
    node_helpers,
    quantized_helpers,
    type_helpers,
    value_helpers,
)
from sardonyx.compat.torch_onnx.jit_scalar_type import JitScalarType
from sardonyx.compat.value_helpers import (
    _DESCRIPTORS,
    _held,
    _is_none,
    _is_value,
    _maybe_get_const,
    _parse_arg,
)
from sardonyx.errors import SymbolicFunctionError
from sardonyx.extend.symbolic_functions.calls import exported_opset
from sardonyx.extend.symbolic_functions.values import SymbolicValue
from sardonyx.lower.values import TORCH_TO_ONNX

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


for _module in (
    function_helpers,
    value_helpers,
    interpolation,
    node_helpers,
    quantized_helpers,
    type_helpers,
):
    globals().update(
        {
            name: helper
            for name, helper in vars(_module).items()
            if getattr(helper, "__module__", None) == _module.__name__
        }
    )


class _Globals:
    """The options of the running export."""

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
