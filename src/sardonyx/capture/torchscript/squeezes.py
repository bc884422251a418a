"""`x.squeeze()`: dims of size 1 are dropped, so that a dynamic size decides how many are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy

from sardonyx.capture.graph import Argument, Dim, Value
from sardonyx.capture.torchscript.values import ScriptList

SQUEEZES = frozenset({"aten::squeeze", "aten::squeeze_"})


@dataclass(frozen=True, slots=True)
class OpenSqueeze:
    """Dims that are dropped, and dims that are dropped where their size is 1 at run time."""

    tensor: Value
    dropped: tuple[int, ...]
    open: tuple[int, ...]


def open_squeeze(operands: Sequence[Argument]) -> OpenSqueeze | None:
    """None where the sizes of all dims concerned are known."""
    if not isinstance(operands[0], Value) or not operands[0].has_shape:
        return None
    tensor, *dims = operands
    rank = len(tensor.shape)
    axes: Sequence[Argument] = range(rank)
    if dims:
        axes = dims[0].state if isinstance(dims[0], ScriptList) else (dims[0],)
    if not all(isinstance(axis, int) and -rank <= axis < rank for axis in axes):
        return None
    axes = sorted({axis % rank for axis in axes})
    if all(isinstance(tensor.shape[axis], int) for axis in axes):
        return None
    return OpenSqueeze(
        tensor,
        tuple(axis for axis in axes if tensor.shape[axis] == 1),
        tuple(axis for axis in axes if _may_be_one(tensor.shape[axis])),
    )


def _may_be_one(size: Dim) -> bool:
    return isinstance(size, sympy.Expr) and (size - 1).is_zero is not False
