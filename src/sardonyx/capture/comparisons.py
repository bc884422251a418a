"""Comparisons of whole tensors, which PyTorch answers with a Python bool."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class ComparisonsAsReads(TorchFunctionMode):
    """Lets torch.equal and torch.allclose compute a tensor and read it: torch.export records that,
    and fails on an operator that gives a bool."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return _REPLACED.get(func, func)(*args, **(kwargs or {}))


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
