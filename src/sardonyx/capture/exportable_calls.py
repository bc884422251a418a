"""Calls that torch.export has no record for, made by ones it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class ExportableCalls(TorchFunctionMode):
    """Comparisons that give a Python bool compute a tensor and read it. Index tensors that stand
    for numbers are read, and masks beside other tensors are given by the places they mark."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func in _INDEXED:
            tensor, index, *assigned = args
            return func(*_recordable(tensor, index), *assigned)
        return _REPLACED.get(func, func)(*args, **(kwargs or {}))


_INDEXED = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


def _recordable(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    indices = list(index) if isinstance(index, tuple) else [index]
    for position in reversed([p for p, i in enumerate(indices) if _is_number(i)]):
        dim = _dim_indexed_at(position, indices, tensor.dim())
        tensor = tensor.select(dim, indices[position].item())
        del indices[position]
    if sum(isinstance(i, (torch.Tensor, list)) for i in indices) > 1:
        indices = [place for i in indices for place in _places(i)]
    return tensor, tuple(indices) if isinstance(index, tuple) or not indices else index


def _dim_indexed_at(position: int, indices: Sequence[Any], rank: int) -> int:
    before = indices[:position]
    if any(i is Ellipsis for i in before):
        return rank - sum(map(_dims_taken, indices[position:]))
    return sum(map(_dims_taken, before))


def _dims_taken(index: Any) -> int:
    if index is None or index is Ellipsis or isinstance(index, bool):
        return 0
    if isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8):
        return index.dim()
    return 1


def _is_number(index: Any) -> bool:
    return (
        isinstance(index, torch.Tensor)
        and index.dim() == 0
        and not index.dtype.is_floating_point
        and index.dtype not in (torch.bool, torch.uint8)
    )


def _places(index: Any) -> Sequence[Any]:
    """The index tensors that a mask stands for."""
    if isinstance(index, torch.Tensor) and index.dtype == torch.bool and index.dim() > 0:
        return index.nonzero(as_tuple=True)
    return [index]


def _equal(input: torch.Tensor, other: torch.Tensor) -> Any:
    if input.shape != other.shape:
        return False
    return (input == other).all().item()


def _allclose(
    input: torch.Tensor,
    other: torch.Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Any:
    return torch.isclose(input, other, rtol, atol, equal_nan).all().item()


_REPLACED = {
    torch.equal: _equal,
    torch.Tensor.equal: _equal,
    torch.allclose: _allclose,
    torch.Tensor.allclose: _allclose,
}
