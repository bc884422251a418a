"""Operators run on fake tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sardonyx._torch_private.flags import quiet_loggers
from sardonyx._torch_private.operators import schema_arguments
from sardonyx._torch_private.patches import sizes_that_may_be_zero
from sardonyx._torch_private.recording import run_operator
from sardonyx._torch_private.tensors.fake_tensors import fake_with_strides_of
from sardonyx._torch_private.tensors.meta_parameters import is_weightless


def fake_from(mode: Any, tensor: torch.Tensor) -> torch.Tensor:
    """A fake tensor with the sizes and strides of `tensor`."""
    if is_weightless(tensor) and tensor.fake_mode is not mode:  # type: ignore[attr-defined]
        return fake_with_strides_of(mode, tensor)
    made: torch.Tensor = mode.from_tensor(tensor.detach(), static_shapes=True)
    return made


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records every operator that reaches the dispatcher, with its arguments and its result; for a
    prim, the ATen operators that it consists of."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "prims" and hasattr(func, "impl_aten"):
            with self:
                return func.impl_aten(*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, result))
        return result


def record_decomposition(
    op: Any, arguments: dict[str, Any], mode: Any
) -> tuple[list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]], Any] | None:
    """PyTorch's decomposition of one call on fake tensors; None where it has none."""
    from torch._decomp import decomposition_table

    args, kwargs = schema_arguments(op, arguments)
    if op is torch.ops.aten.meshgrid.default:  # its Python form requires `indexing`
        op, kwargs = torch.ops.aten.meshgrid.indexing, {"indexing": "ij"}
    recorder = Recorder()
    with quiet_loggers(), torch.no_grad(), mode, recorder:
        if op in decomposition_table:
            result = decomposition_table[op](*args, **kwargs)
        elif op._can_decompose():
            result = op.decompose(*args, **kwargs)
        elif op._schema.name.startswith("aten::_foreach_"):
            # Its kernel for all devices: one call for each tensor of the list.
            result = op._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *args, **kwargs)
        else:
            return None
    if result is NotImplemented or any(call[0] is op for call in recorder.calls):
        return None
    return recorder.calls, result


def run_on_fakes(
    op: Any, args: dict[str, Any], mode: Any, function: Callable[..., Any] | None = None
) -> Any:
    """As `run_operator`, outside of a recording."""
    with quiet_loggers(), torch.no_grad(), sizes_that_may_be_zero():
        return run_operator(op, args, mode, function)
