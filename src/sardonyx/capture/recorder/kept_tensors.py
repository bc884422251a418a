"""Fake tensors that outlive the run, in a cache or a global: the holder gets what eager PyTorch
would have put there, or the export is refused and names it."""

from __future__ import annotations

import functools
import gc
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from types import CellType, FrameType
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.capture.control_flow import all_nodes
from sardonyx.capture.graph import Value, values_in
from sardonyx.capture.recorder.example import ExampleValues
from sardonyx.capture.recorder.recorder import Recorder
from sardonyx.errors import CaptureError, format_message


def settle_kept_tensors(recorder: Recorder, results: Sequence[Any]) -> None:
    """`results` and what the recorder knows are the only places where fake tensors may be left."""
    if _kept(recorder, results):
        gc.collect()  # what is only in cycles is no longer held
        kept = _kept(recorder, results)
        if kept:
            own = {id(c) for c in _containers([results, *recorder.example.containers()])}
            _Holders(recorder, own).settle(kept)


def _kept(recorder: Recorder, results: Sequence[Any]) -> list[torch.Tensor]:
    """The fake tensors that more refer to than the recorder and the results."""
    own = list(_own_references(recorder, results))
    counts = Counter(map(id, own))
    fakes = {id(fake): fake for fake in own}
    del own
    # The dict, and the argument of getrefcount.
    keys = [key for key in fakes if sys.getrefcount(fakes[key]) > counts[key] + 2]
    return [fakes[key] for key in keys]


def _own_references(recorder: Recorder, results: Sequence[Any]) -> Iterator[torch.Tensor]:
    mode = recorder.mode
    found = (recorder.references(), recorder.example.references(), _leaves(results))
    for source in found:
        for tensor in source:
            if _torch_private.is_fake_of(mode, tensor):
                yield tensor
    for value in _values(recorder):
        if value.fake is not None:
            yield value.fake


def _values(recorder: Recorder) -> Iterable[Value]:
    graph = recorder.graph
    known = (*graph.inputs, *graph.parameters.values(), *recorder.tensors.values())
    found = {id(value): value for value in known}
    for node in all_nodes(graph.nodes):
        for value in (*node.inputs(), *node.outputs):
            found[id(value)] = value
        for block in node.blocks:
            for value in (*block.inputs, *values_in(block.outputs)):
                found[id(value)] = value
    return found.values()


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    else:
        yield value


def _containers(value: Any) -> Iterator[Any]:
    """The lists, tuples and dicts in a value, itself among them."""
    if isinstance(value, (list, tuple, dict)):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from _containers(item)


class _Holders:
    def __init__(self, recorder: Recorder, own: set[int]) -> None:
        """`own`: the ids of our own containers."""
        self._recorder = recorder
        self._own = own
        self._example: ExampleValues = recorder.example

    def settle(self, kept: list[torch.Tensor]) -> None:
        is_frozen = bool(gc.get_freeze_count())
        gc.unfreeze()  # a cache is older than the export
        try:
            found = [
                (holder, fake)
                for fake in kept
                for holder in gc.get_referrers(fake)
                if holder is not kept and not self._is_own(holder)
            ]
        finally:
            if is_frozen:
                gc.freeze()
        for holder, fake in found:
            self._replace(holder, fake)

    def _is_own(self, holder: Any) -> bool:
        kind = type(holder)
        return (
            isinstance(holder, FrameType)
            or id(holder) in self._own
            or kind.__module__.startswith(("sardonyx.", "torch._subclasses", "torch.fx"))
            or self._recorder.tensors.is_own_container(holder)
        )

    def _replace(self, holder: Any, fake: torch.Tensor) -> None:
        if isinstance(holder, functools._lru_cache_wrapper):
            holder.cache_clear()
        elif isinstance(holder, dict):
            for key in [key for key, value in holder.items() if value is fake]:
                holder[key] = self._real(fake, holder)
        elif isinstance(holder, (list, deque)):
            for place, item in enumerate(holder):
                if item is fake:
                    holder[place] = self._real(fake, holder)
        elif isinstance(holder, CellType):
            holder.cell_contents = self._real(fake, holder)
        elif isinstance(holder, (set, frozenset)):
            raise self._refusal(holder)

    def _real(self, fake: torch.Tensor, holder: Any) -> torch.Tensor:
        try:
            return self._example.of(fake).clone()
        except Exception as error:
            raise self._refusal(holder) from error

    def _refusal(self, holder: Any) -> CaptureError:
        kind = type(holder)
        return CaptureError(
            format_message(
                "the model keeps a tensor of this run in a"
                f" {kind.__module__}.{kind.__qualname__} that outlives it, where the recording has"
                " no values for it",
                [("try", "a buffer of the model, or a tensor that is made before the export")],
            )
        )
