"""Many small functions in one export, each compared with eager by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch

import sardonyx
from tests.lower.ops.harness import compare

CAPTURES = ("trace", "export")
Function = Callable[..., Any]


class _All(torch.nn.Module):
    """Every function on copies of its own, so that none sees what another one writes."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        super().__init__()
        self.functions = dict(functions)

    def forward(self, *args: torch.Tensor) -> tuple[Any, ...]:
        return tuple(f(*(a.clone() for a in args)) for f in self.functions.values())


def agree(
    functions: Mapping[str, Function],
    *args: torch.Tensor,
    capture: str,
    dynamic: Mapping[int, Sequence[int]] | None = None,
    others: Sequence[tuple[torch.Tensor, ...]] = (),
) -> None:
    """Each function gives in ONNX Runtime what it gives in eager PyTorch."""
    model = _All(functions)
    names = [f"in{i}" for i in range(len(args))]
    axes = {names[i]: list(dims) for i, dims in (dynamic or {}).items()}
    program = sardonyx.export(
        model, args, kwargs={}, capture=capture, input_names=names, dynamic_axes=axes
    )
    for inputs in (args, *others):
        expected, actual = model(*inputs), program(*inputs)
        for name, wanted, got in zip(functions, expected, actual, strict=True):
            compare(wanted, got, f"{name} ({capture}, {[tuple(i.shape) for i in inputs]})")


def refused(
    function: Function, *args: torch.Tensor, capture: str, match: str
) -> pytest.ExceptionInfo[sardonyx.SardonyxError]:
    with pytest.raises(sardonyx.SardonyxError, match=match) as info:
        sardonyx.export(_All({"f": function}), args, kwargs={}, capture=capture)
    return info
