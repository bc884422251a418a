"""What the model's own code reads off tensors where tracing baked a value, in runs of PyTorch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from sardonyx.aten.location import Place, innermost_user_place
from sardonyx.capture.baked_values import BakedValue, listed, reads_metadata, text_of_read


@dataclass
class _Reads:
    """What one run read at one place."""

    texts: list[str] = field(default_factory=list)
    exact: list[Any] = field(default_factory=list)
    sizes: list[Any] = field(default_factory=list)
    """While tracing, sizes are tensors too."""


class BakedReads:
    """Compares what is read in further runs with what the example reads."""

    def __init__(self, baked: Collection[BakedValue]) -> None:
        self._baked = {value.place: value for value in baked}
        self._example: Mapping[Place, _Reads] | None = None
        self._last: Mapping[Place, _Reads] = {}
        self._changed: dict[Place, str] = {}
        """The label of the first run that read another value, and agreed all the same."""

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Around a run of PyTorch; the first is that of the example."""
        if not self._baked:
            yield
            return
        self._last = reads = {place: _Reads() for place in self._baked}
        with _Watch(reads):
            yield
        if self._example is None:
            self._example = reads

    def causes(self) -> list[str]:
        """Why the last run differs from ONNX Runtime: it read other values than were baked."""
        return [
            self._baked[place].is_what(
                "the likely cause: what is read here is"
                f" {listed(self._last[place].texts) or 'another size'}"
            )
            for place in self._differing("exact")
            or self._differing("sizes")
            or self._unlike_export()
        ]

    def agreed(self, label: str) -> None:
        """The last run gave what ONNX Runtime gave."""
        for place in (*self._differing("exact"), *self._differing("sizes")):
            self._changed.setdefault(place, label)

    def are_untried(self) -> bool:
        """Whether values were baked that all runs read alike, sizes aside."""
        example = self._example or {}
        return any(example[p].texts and p not in self._changed for p in self._baked if p in example)

    def differ(self) -> bool:
        """Whether the last run read another value than the example."""
        return bool(self._differing("exact"))

    def findings(self) -> list[str]:
        """What was learned of every baked value by runs that all agreed."""
        return [
            value.is_what(f"without effect at {self._changed[place]}, where PyTorch reads another")
            if place in self._changed
            else value.is_what("the same at all inputs tried, and may matter at others")
            for place, value in self._baked.items()
        ]

    def _unlike_export(self) -> list[Place]:
        """Where the first run, which may have other inputs than the export had, reads others."""
        return [
            place
            for place, reads in self._last.items()
            if reads.texts and tuple(reads.texts) != self._baked[place].values
        ]

    def _differing(self, kind: str) -> list[Place]:
        example = self._example or {}
        return [
            place
            for place, reads in self._last.items()
            if place in example and getattr(reads, kind) != getattr(example[place], kind)
        ]


class _Watch(TorchFunctionMode):
    def __init__(self, reads: dict[Place, _Reads]) -> None:
        super().__init__()
        self._reads = reads

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        is_size = isinstance(result, torch.Size) or name in _SIZES
        if not is_size and (name in _LAYOUT or reads_metadata(name)):
            return result
        text = None if is_size else text_of_read(name, args, result)
        if is_size or text is not None:
            reads = self._reads.get(innermost_user_place(sys._getframe(1)))
            if reads is not None and text is not None:
                reads.texts.append(text)
                reads.exact.append(_exact(text, result))
            elif reads is not None:
                reads.sizes.append(result)
        return result


def _exact(text: str, result: Any) -> Any:
    """What is equal where all of the value is, NaN included."""
    if isinstance(result, np.ndarray):
        return result.shape, result.tobytes()
    return repr(result) if isinstance(result, (int, float, complex, str, list)) else text


_SIZES = frozenset(("size", "numel", "nelement", "__len__"))
_LAYOUT = frozenset(("dim", "stride", "storage_offset", "element_size", "data_ptr"))
