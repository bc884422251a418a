"""Costly calls that a trace records without running them.

A trace holds what was called, not what came out. A call that treats the entries of a batch one
after the other is made with an empty batch, which takes no time and is recorded as any call is; the
model goes on with zeros in the place of the results. That is right as long as nothing looks at
values, and nothing is written that was there before. Where that is about to happen, the recording
so far is run, all tensors get their values, and from there on every call is run.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeAlias

import torch
import torch.utils.dlpack
from torch.nn import functional as F

from sardonyx import _torch_private
from sardonyx.capture.batched_calls import BATCHED_CALLS
from sardonyx.capture.flat_model import OutputRecord, is_graph_output
from sardonyx.capture.identity_checks import GIVES_SIZES
from sardonyx.capture.questions import seen_from_within
from sardonyx.capture.state import makes_literals, shows_memory, written_by
from sardonyx.capture.traced_sizes import TracedSize
from sardonyx.capture.value_free_calls import (
    is_value_free,
    takes_indices,
    takes_sizes,
    tells_how_made,
    writes_nothing,
)
from sardonyx.capture.watched_calls import Call, ChangingMode, WatchingMode, addresses, tensors_in

_Reference: TypeAlias = Callable[[], torch.Tensor | None]

LEAST_WORK = 1 << 22
"""Multiplications of the least call that is not run: a smaller one takes no longer than this."""


class ValuesMissingError(BaseException):
    """Values cannot be had of the recording. The model's own code is not meant to catch it."""


class UnrunCalls(ChangingMode):
    """Records costly calls without running them."""

    def __init__(self, record: OutputRecord, held: Iterable[torch.Tensor]) -> None:
        """`held` are the tensors that the model has."""
        super().__init__()
        self.watch = _CallsWatch(self)
        """Has to see every call that is made next to this one."""
        self.inputs: Sequence[torch.Tensor] = ()
        """Those of the recording."""
        self.lacks_values = False
        """Whether there are tensors that hold zeros instead of what they stand for."""
        self.has_unrun = False
        self.runs_all = False
        self._is_given_up = False
        self.when_values_are_given: Callable[[], None] = lambda: None
        self._record = record
        self._held = addresses(held)
        self._returned: list[_Reference] = []
        """The results of the recording."""
        self._kept: list[_Reference] = []
        """What it returns next to them."""
        self._dispatch_modes = _torch_private.dispatch_mode_count()
        self._random_state = _random_state()

    def changes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        call = BATCHED_CALLS.get(func)
        if call is None or self.runs_all or not args or not _torch_private.is_tracing():
            return False
        if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or self.is_seen_below():
            return False
        with _torch_private.tracing_paused():  # which would record the questions
            tensors = list(tensors_in((*args, *kwargs.values())))
            is_unrun = (
                isinstance(args[0], torch.Tensor)
                and all(map(_is_plain, tensors))
                and len({tensor.dtype for tensor in tensors}) == 1
                and bool(call.batches(args, kwargs))
                and call.work(args) >= LEAST_WORK
            )
        if is_unrun and not self.has_unrun and self._has_drawn():
            self.runs_all = True
        return is_unrun and not self.runs_all

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self.runs_all:
            return func(*args, **kwargs)
        with _torch_private.tracing_paused():
            batches = BATCHED_CALLS[func].batches(args, kwargs)
        self.has_unrun = self.lacks_values = True
        try:
            return _torch_private.recorded_on_empty_batches(func, args, kwargs, batches)
        except Exception as error:  # which a real run need not have, and the model may catch
            self.give_up(error)

    def is_seen_below(self) -> bool:
        """Whether a mode of the model's own sees each operator, with the values it is given."""
        return _torch_private.dispatch_mode_count() > self._dispatch_modes

    def run_from_here(self) -> None:
        """All tensors get their values, and all further calls are run."""
        self.runs_all = True
        if not self.lacks_values:
            return
        if not _torch_private.is_tracing() or self._has_drawn():
            self.give_up()
        try:
            _torch_private.give_values_while_tracing(self.watch.alive(), self.inputs)
        except Exception as error:
            self.give_up(error)
        self.lacks_values = False
        self.when_values_are_given()

    def give_up(self, error: Exception | None = None) -> NoReturn:
        """The recording is of no use, also where the model goes on."""
        self.lacks_values = self._is_given_up = True
        raise ValuesMissingError from error

    @contextlib.contextmanager
    def around_the_model(self, kept: list[torch.Tensor]) -> Iterator[None]:
        """Inside of what is recorded. Adds to `kept`, which the recording returns next to its
        results, what the model still has in the end."""
        try:
            with _uses_unseen_announced(self.run_from_here):
                yield
        except Exception:
            if self.lacks_values:
                with contextlib.suppress(ValuesMissingError):
                    self.run_from_here()
                self.lacks_values = True  # the values may be what it failed on
            raise
        if self.lacks_values:
            leaves = self._record.leaves
            returned = (leaf for leaf in leaves if is_graph_output(leaf))
            self._returned = [
                weakref.ref(leaf) if self.watch.has_made(leaf) else lambda: None
                for leaf in returned
            ]
            known = {id(tensor) for tensor in (*leaves, *kept)}
            alive = [tensor for tensor in self.watch.alive() if id(tensor) not in known]
            self._kept = [weakref.ref(tensor) for tensor in alive]
            kept += alive

    def finish(self, graph: Any) -> bool:
        """When the model has run, and has what it had before. Takes what was kept out of the graph;
        results that something else still holds, as a cache, get their values. Whether the graph is
        the one that a run of all calls gives."""
        self._record.forget_values()
        if any(reference() is not None for reference in (*self._returned, *self._kept)):
            gc.collect()
        returned = [reference() for reference in self._returned]
        kept = [reference() for reference in self._kept]
        # Views that the recording returns as well lie between the two.
        for tensors, position in ((returned, 0), (kept, -len(kept))):
            if any(tensor is not None for tensor in tensors):
                if self._has_drawn():
                    self.give_up()
                _torch_private.give_values(graph, self.inputs, tensors, position)
        if kept:
            _torch_private.without_last_results(graph, len(kept))
        known = self._held | self.watch.literals
        return not self._is_given_up and _torch_private.holds_whatever_values(graph, known)

    def _has_drawn(self) -> bool:
        """Whether the run drew random numbers, which another one would draw anew."""
        return _random_state() != self._random_state


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


class _CallsWatch(WatchingMode):
    """Finds the calls that look at values, or that write what was there before."""

    def __init__(self, unrun: UnrunCalls) -> None:
        super().__init__()
        self._unrun = unrun
        self._made: list[weakref.ref[torch.Tensor]] = []
        self._origins = _torch_private.TracedOrigins()
        self._memory: set[int] = set()
        """Addresses of what was made in the run."""
        self._unknown: set[int] = set()
        """Addresses of what was computed from missing values."""
        self.literals: set[int] = set()
        """Addresses of tensors made of Python values."""

    def before(self, call: Call) -> None:
        if self._unrun.has_unrun and tells_how_made(call):
            self._unrun.give_up()
        if self._unrun.runs_all or not _torch_private.is_tracing():
            return
        if (
            self._writes_outside(call)
            or shows_memory(call)
            or any(isinstance(a, torch.Generator) for a in call.kwargs.values())
            or (self._unrun.lacks_values and self._may_look(call))
        ):
            self._unrun.run_from_here()

    def after(self, call: Call) -> None:
        if self._unrun.runs_all:
            return
        if makes_literals(call):  # a trace holds it by its memory
            made = addresses(tensors_in(call.result))
            self._memory -= made
            self.literals |= made
        else:
            self._memory |= call.new_addresses
        if (self._unrun.lacks_values and call.func not in GIVES_SIZES) and (
            call.func in BATCHED_CALLS or not self._unknown.isdisjoint(call.given_addresses)
        ):
            self._unknown |= addresses(tensors_in(call.result))
            self._unknown |= addresses(written_by(call))
        self._made += [weakref.ref(t) for t in tensors_in(call.result) if _is_computed(t)]

    def alive(self) -> list[torch.Tensor]:
        """What was made in the run."""
        found = {id(tensor): tensor for made in self._made if (tensor := made()) is not None}
        return [tensor for tensor in found.values() if self.has_made(tensor)]

    def has_made(self, leaf: Any) -> bool:
        """Whether it is a tensor that was computed in the run."""
        return _is_computed(leaf) and _torch_private.memory_address(leaf) in self._memory

    def _writes_outside(self, call: Call) -> bool:
        if not call.given or writes_nothing(call):
            return False
        return not addresses(written_by(call)) <= self._memory

    def _may_look(self, call: Call) -> bool:
        if self._unrun.is_seen_below():
            return True
        computed = [tensor for tensor in call.given if not self._is_number(tensor)]
        if call.given and not computed:
            return False
        return (
            not all(type(tensor) in _PLAIN_TYPES for tensor in computed)
            or not is_value_free(call)
            or (takes_sizes(call) and any(map(_is_of_integers, computed[1:])))
            or (takes_indices(call) and any(map(self._is_unknown_index, computed)))
        )

    def _is_unknown_index(self, tensor: torch.Tensor) -> bool:
        """Whether it may lie outside of what it indexes."""
        is_unknown = _torch_private.memory_address(tensor) in self._unknown
        return is_unknown and _is_of_integers(tensor)

    def _is_number(self, tensor: torch.Tensor) -> bool:
        """Whether it is a size, or a number that Python gave."""
        return type(tensor) is TracedSize or (
            tensor.dim() == 0
            and _torch_private.memory_address(tensor) not in self._unknown
            and self._origins.of(tensor) != "data"
        )


def _random_state() -> bytes:
    with _torch_private.tracing_paused(), _torch_private.functions_unwatched():
        return torch.get_rng_state().numpy().tobytes()


def _is_computed(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and type(leaf) is not TracedSize


def _is_of_integers(tensor: torch.Tensor) -> bool:
    kinds = (tensor.is_floating_point(), tensor.is_complex(), tensor.dtype == torch.bool)
    return not any(kinds)


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) in _PLAIN_TYPES
        and tensor.is_floating_point()
        and tensor.device.type == "cpu"
        and tensor.layout == torch.strided
        and not tensor.is_neg()
        and not _torch_private.is_transformed(tensor)
    )


_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)


@contextlib.contextmanager
def _uses_unseen_announced(announce: Callable[[], None]) -> Iterator[None]:
    """Calls it before the model hands tensors to what no mode of this thread sees."""
    thread = threading.get_ident()
    is_entered = True

    def announced(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            # Threads that export at once may put back what another one put there.
            if is_entered and threading.get_ident() == thread:
                announce()
            return function(*args, **kwargs)

        return call

    with contextlib.ExitStack() as restored:
        for owner, name in _UNSEEN:
            is_own = name in vars(owner)
            original = getattr(owner, name)
            setattr(owner, name, announced(original))
            if is_own:
                restored.callback(setattr, owner, name, original)
            else:
                restored.callback(delattr, owner, name)
        try:
            yield
        finally:
            is_entered = False


_UNSEEN: tuple[tuple[Any, str], ...] = (
    (threading.Thread, "start"),
    (ThreadPoolExecutor, "submit"),
    (torch.utils.dlpack, "to_dlpack"),
    (torch.Tensor, "_make_subclass"),
    *_torch_private.CALLS_OF_SCRIPTS,
)
