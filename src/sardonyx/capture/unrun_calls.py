"""Costly calls that a trace records without running them.

A trace holds what was called, not what came out. A call that treats the entries of a batch one
after the other is made with an empty batch, which takes no time and is recorded as any call is; the
model goes on with zeros in the place of the results. That is right as long as nothing looks at
values: where something does, the recording is given up for one that runs all calls.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from sardonyx import _torch_private
from sardonyx.capture.batched_calls import BATCHED_CALLS
from sardonyx.capture.flat_model import OutputRecord
from sardonyx.capture.questions import seen_from_within
from sardonyx.capture.traced_sizes import TracedSize
from sardonyx.capture.value_free_calls import is_value_free
from sardonyx.capture.watched_calls import Call, ChangingMode, WatchingMode, addresses, tensors_in

LEAST_WORK = 1 << 22
"""Multiplications of the least call that is not run: a smaller one takes no longer than this."""


class ValuesNeeded(BaseException):
    """The model looks at values that were not computed. Its own code is not meant to catch it."""


class UnrunCalls(ChangingMode):
    """Records costly calls without running them."""

    def __init__(self, record: OutputRecord, held: Iterable[torch.Tensor]) -> None:
        """`held` are the tensors that the model has."""
        super().__init__()
        self.watch = _ValuesWatch(self)
        """Has to see every call that is made next to this one."""
        self.has_unrun = False
        self.values_needed = False
        """Whether the recording is not to be used."""
        self._kept: list[weakref.ref[torch.Tensor]] = []
        self._record = record
        self._held = addresses(held)

    def changes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        call = BATCHED_CALLS.get(func)
        if call is None or self.values_needed or not args or not _torch_private.is_tracing():
            return False
        with _torch_private.tracing_paused():  # which would record the questions
            return (
                all(map(_is_plain, tensors_in((*args, *kwargs.values()))))
                and isinstance(args[0], torch.Tensor)
                and bool(call.batches(args, kwargs))
                and call.work(args) >= LEAST_WORK
            )

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.has_unrun = True
        kwargs = kwargs or {}
        with _torch_private.tracing_paused():
            batches = BATCHED_CALLS[func].batches(args, kwargs)
        return _torch_private.recorded_on_empty_batches(func, args, kwargs, batches)

    def need_values(self) -> None:
        """Gives the recording up if values are missing."""
        if self.has_unrun:
            self.values_needed = True
            raise ValuesNeeded

    @contextlib.contextmanager
    def until_the_end(self, kept: list[torch.Tensor]) -> Iterator[None]:
        """Around the model's code, inside of what is recorded. Adds to `kept`, which the recording
        returns next to its results, what the model still has in the end. A run that failed ends as
        any does, so that there is a recording to get values from."""
        try:
            yield
        except (Exception, ValuesNeeded):
            self.values_needed = self.has_unrun
            if not self.has_unrun or not _torch_private.is_tracing():  # an operator failed
                raise
            self._note_kept(kept)
        else:
            self._note_kept(kept)

    def _note_kept(self, kept: list[torch.Tensor]) -> None:
        known = {id(tensor) for tensor in (*self._record.leaves, *kept)}
        alive = [tensor for tensor in self.watch.alive() if id(tensor) not in known]
        self._kept = [weakref.ref(tensor) for tensor in alive]
        kept += alive

    def finish(self, graph: Any, inputs: Callable[[], Sequence[torch.Tensor]]) -> None:
        """When the model has run, and has what it had before. Takes what was kept out of the graph;
        results that something else still holds, as a cache, get their values."""
        if self._kept:
            if any(reference() is not None for reference in self._kept):
                gc.collect()
            alive = [reference() for reference in self._kept]
            if any(tensor is not None for tensor in alive):
                _torch_private.give_values(graph, inputs(), alive)
            _torch_private.without_last_results(graph, len(alive))
        if not _torch_private.holds_whatever_values(graph, self._held | self.watch.literals):
            self.values_needed = True


class OpenedCalls(ChangingMode):
    """Has the modes before it see what is costly in calls that are seen as one."""

    def changes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return func in _OPENED

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return _OPENED[func](*args, **(kwargs or {}))


_OPENED = {
    F.multi_head_attention_forward: seen_from_within(F.multi_head_attention_forward),
}


class _ValuesWatch(WatchingMode):
    """Finds the calls that look at values."""

    def __init__(self, unrun: UnrunCalls) -> None:
        super().__init__()
        self._unrun = unrun
        self._made: list[weakref.ref[torch.Tensor]] = []
        self.literals: set[int] = set()
        """Addresses of tensors made of Python values."""

    def before(self, call: Call) -> None:
        if not self._unrun.has_unrun:
            return
        is_of_sizes = call.given and all(type(tensor) is TracedSize for tensor in call.given)
        if self._unrun.values_needed or not (is_of_sizes or is_value_free(call)):
            self._unrun.need_values()

    def after(self, call: Call) -> None:
        if not call.given:
            self.literals |= call.new_addresses
        if self._unrun.has_unrun:
            self._made += map(weakref.ref, tensors_in(call.result))

    def alive(self) -> list[torch.Tensor]:
        found = {id(tensor): tensor for made in self._made if (tensor := made()) is not None}
        return list(found.values())


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) in _PLAIN_TYPES
        and tensor.device.type == "cpu"
        and tensor.layout == torch.strided
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not _torch_private.is_transformed(tensor)
    )


_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
