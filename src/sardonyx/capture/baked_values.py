"""Computed values that a trace turned into constants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sardonyx.aten.location import Place, place_text
from sardonyx.notes import Note, NoteKind

_SHOWN_VALUES = 3


@dataclass(frozen=True, slots=True)
class BakedValue:
    """What a line of the model's code read, and the recording holds as it was."""

    place: Place
    reads: tuple[str, ...]
    """What became of tensors there: "a tensor becomes a Python int"."""
    values: tuple[str, ...]
    """What was read, in order and as text; values without a short text are missing."""

    def __str__(self) -> str:
        value = f" ({listed(self.values)})" if self.values else ""
        return f"tracing bakes a value: {'; '.join(self.reads)}{value} at {place_text(self.place)}"

    def note(self) -> Note:
        return Note(str(self), NoteKind.BAKED_VALUE, self.place)

    def is_what(self, predicate: str) -> str:
        """`the baked value 3 at my_model.py:12 (n = int(x.sum())) is ...`, or values that are."""
        file, line, text = self.place
        what = f"{file}:{line} ({text})"
        if len(set(self.values)) > 1:
            return f"the baked values {listed(self.values)} at {what} are {predicate}"
        value = "".join(f" {value}" for value in self.values[:1])
        return f"the baked value{value} at {what} is {predicate}"


def listed(values: Iterable[str]) -> str:
    shown = list(dict.fromkeys(values))
    more = ["..."] if len(shown) > _SHOWN_VALUES else []
    return ", ".join([*shown[:_SHOWN_VALUES], *more])


_LONGEST_TEXT = 40


def reads_metadata(name: str) -> bool:
    """Whether a call that gives a Python value looks at no data."""
    return (name.startswith(("is_", "has_", "__get__")) and name != "is_nonzero") or (
        name in ("_is_view", "_has_compatible_shallow_copy_type", "q_scale")
    )


def text_of_read(name: str, args: Sequence[Any], result: Any) -> str | None:
    """What the call of a function read off tensors, in short; None where it gives no value."""
    if name == "__iter__" and isinstance(args[0], torch.Tensor):
        return f"{args[0].shape[0]} times"
    if isinstance(result, list) and result:
        result = np.asarray(result)
    if isinstance(result, np.ndarray):
        first = [_text(value) for value in result.reshape(-1)[:_SHOWN_VALUES].tolist()]
        if result.ndim == 1 and result.size <= _SHOWN_VALUES:
            return f"[{', '.join(first)}]"
        return f"[{', '.join([*first, '...'])}] of shape {list(result.shape)}"
    return _text(result) if isinstance(result, (int, float, complex, str, list)) else None


def _text(value: Any) -> str:
    if isinstance(value, (float, complex)):
        return f"{value:.6g}"
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."
