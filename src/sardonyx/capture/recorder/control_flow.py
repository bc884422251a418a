"""Control flow operators (`torch.cond`, `while_loop`, `scan`, `map` ...) as branches and loops: their
bodies are run once, into a block each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx.capture.bind import bind
from sardonyx.capture.control_flow import BRANCH, LOOP
from sardonyx.capture.graph import (
    Argument,
    Block,
    Node,
    SymbolSource,
    TensorType,
    Value,
)
from sardonyx.capture.location import place_text
from sardonyx.errors import CaptureError, UnsupportedOperatorError, format_message

if TYPE_CHECKING:
    from sardonyx.capture.recorder.recorder import Recorder


class ControlFlow:
    """Records the calls of higher-order operators."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = _torch_private.higher_order_name(func)
        raise UnsupportedOperatorError(
            format_message(
                f"{name or func} has no ONNX form",
                [("first", self._recorder.location().describe())],
            )
        )
