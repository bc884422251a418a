"""Packed sequences under torch.export, where how many there are is known at run time only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch

from sardonyx.capture.function_overrides.function_mode import ReplacedCalls

_PAD = "_pad_packed_sequence"
_WITHOUT_TOTAL_LENGTH = -1


_READS = (".tolist()", ".numpy()", "int(")
_LENGTHS = re.compile(r"len(?!\()")


def hint_for_lengths(places: Iterable[str]) -> str:
    """What helps where a line may read the lengths of packed sequences off a tensor; else ""."""
    for place in places:
        code = place.rpartition(".py:")[2]
        reads = any(read in code for read in _READS)
        if "pack_padded_sequence(" in code or (reads and _LENGTHS.search(code)):
            return "lengths for pack_padded_sequence as the tensor they are, not its tolist()"
    return ""


class PackedSequences(ReplacedCalls):
    """What torch.nn calls for them, with arguments that torch.export takes."""

    def replaces(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return func is torch.zeros or getattr(func, "__name__", "") == _PAD

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func == torch.zeros and any(isinstance(size, torch.Tensor) for size in args):
            # The first state of a layer: one for each element of the first step.
            args = tuple(s.item() if isinstance(s, torch.Tensor) else s for s in args)
        elif getattr(func, "__name__", "") == _PAD and isinstance(args[-1], torch.SymInt):
            # The length of the longest sequence, which is what the operator takes by itself.
            args = (*args[:-1], _WITHOUT_TOTAL_LENGTH)
        return func(*args, **kwargs)
