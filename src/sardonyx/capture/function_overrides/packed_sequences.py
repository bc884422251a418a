"""Packed sequences whose number is only known at run time."""

from __future__ import annotations

from typing import Any

import torch

from sardonyx.capture.function_overrides.function_mode import FunctionOverride

_PAD = "_pad_packed_sequence"
_WITHOUT_TOTAL_LENGTH = -1


class PackedSequenceOverride(FunctionOverride):
    """The functions that torch.nn calls for them, with arguments that can be recorded."""

    def applies(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return func is torch.zeros or getattr(func, "__name__", "") == _PAD

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func == torch.zeros and any(isinstance(size, torch.Tensor) for size in args):
            # The first state of a layer: one for each element of the first step.
            args = tuple(s.item() if isinstance(s, torch.Tensor) else s for s in args)
        elif getattr(func, "__name__", "") == _PAD and isinstance(args[-1], torch.SymInt):
            # The length of the longest sequence, which is what the operator takes by itself.
            args = (*args[:-1], _WITHOUT_TOTAL_LENGTH)
        return func(*args, **kwargs)
