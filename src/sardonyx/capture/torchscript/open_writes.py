"""Writes that PyTorch takes apart for the sizes of the example, by others that hold for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

from sardonyx.capture.graph import Argument, SourceLocation, Value
from sardonyx.errors import CaptureError, format_message

aten = torch.ops.aten


class Writer(Protocol):
    here: SourceLocation

    def emit(self, op: Any, args: Any, **kwargs: Argument) -> list[Value]: ...


def write_of(name: str) -> Callable[[Writer, dict[str, Argument]], None] | None:
    """How an operator of a script is written; None where PyTorch's way holds for all sizes."""
    return _WRITES.get(name)


def _fill_diagonal(writer: Writer, arguments: dict[str, Argument]) -> None:
    tensor = arguments["self"]
    sizes = tensor.shape
    if all(isinstance(size, int) for size in sizes):
        writer.emit(aten.fill_diagonal_.default, list(arguments.values()))
        return
    if len(sizes) != 2 or arguments["wrap"]:
        raise CaptureError(
            format_message(
                "fill_diagonal_ of more than two dims, or with wrap, wants sizes that are known in"
                " a script",
                [("at", writer.here.describe()), ("try", 'capture="trace" or capture="export"')],
            )
        )
    (diagonal,) = writer.emit(aten.diagonal.default, [tensor])
    writer.emit(aten.fill_.Scalar, [diagonal, arguments["fill_value"]])


_WRITES: dict[str, Callable[[Writer, dict[str, Argument]], None]] = {
    "aten::fill_diagonal_": _fill_diagonal,
}
