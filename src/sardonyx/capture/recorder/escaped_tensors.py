"""Fake tensors and symbolic numbers that outlive the run, in a cache or a global: the holder gets
what eager PyTorch would have put there, or the export is refused and names it."""

from __future__ import annotations

import functools
import gc
import inspect
import sys
import traceback
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import CellType, FrameType, MemberDescriptorType
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.control_flow import all_nodes
from sardonyx.aten.graph import Value, values_in
from sardonyx.aten.pytree import leaves_in
from sardonyx.capture.recorder.example_values import ExampleValues
from sardonyx.capture.recorder.recorder import Recorder
from sardonyx.errors import CaptureError


def replace_escaped(
    recorder: Recorder,
    results: Sequence[Any],
    numbers: Sequence[weakref.ref[Any]],
    values: Callable[[], ExampleValues],
) -> None:
    """Fake tensors and symbolic numbers may only be left in `results` and in the recorder; anywhere
    else they are replaced by `values`."""
    if _escaped(recorder, results) or _escaped_numbers(recorder, results, numbers):
        gc.collect()  # what is only in cycles is no longer held
        escaped: list[Any] = [*_escaped(recorder, results)]
        escaped += _escaped_numbers(recorder, results, numbers)
        if escaped:
            own = {id(c) for c in _containers([results, *recorder.example.containers()])}
            _EscapedTensors(recorder, values(), own, escaped).replace_all()


def release_frames(error: BaseException, outside: BaseException | None) -> None:
    """Clears the local variables of the frames in the traceback of an error that ended a run, and
    of the errors of that run that led to it: they hold tensors, and nothing reads them there.

    An error that led to it is of the run if one of its frames is; `outside` is the error that the
    caller of the export is handling, if any. Generators may go on: their frames stay."""
    seen = {id(outside)}
    frames: set[FrameType] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen or each.__traceback__ is None:
            continue
        seen.add(id(each))
        found = [frame for frame, _ in traceback.walk_tb(each.__traceback__)]
        if each is error or found[0] in frames:
            frames.update(found)
            pending += [each.__cause__, each.__context__]
    for frame in frames:
        if not frame.f_code.co_flags & _RESUMABLE:
            with suppress(RuntimeError):  # it is running
                frame.clear()


_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _escaped_numbers(
    recorder: Recorder, results: Sequence[Any], numbers: Sequence[weakref.ref[Any]]
) -> list[Any]:
    """Those that are referenced outside of our own containers."""
    alive = [number for reference in numbers for number in (reference(),)]
    found = {id(number): number for number in alive if number is not None}
    del alive
    if not found:
        return []
    counts: Counter[int] = Counter()
    own = [results, *recorder.example.containers()]
    for container in {id(c): c for c in _containers(own)}.values():
        items = container.values() if isinstance(container, dict) else container
        counts.update(key for key in map(id, items) if key in found)
    # The dict, and the argument of getrefcount.
    return [found[key] for key in [*found] if sys.getrefcount(found[key]) > counts[key] + 2]


def _escaped(recorder: Recorder, results: Sequence[Any]) -> list[torch.Tensor]:
    """The fake tensors that are referenced outside of the recorder and the results."""
    own = list(_own_references(recorder, results))
    counts = Counter(map(id, own))
    fakes = {id(fake): fake for fake in own}
    del own
    # The dict, and the argument of getrefcount.
    keys = [key for key in fakes if sys.getrefcount(fakes[key]) > counts[key] + 2]
    return [fakes[key] for key in keys]


def _own_references(recorder: Recorder, results: Sequence[Any]) -> Iterator[torch.Tensor]:
    mode = recorder.mode
    found = (recorder.references(), recorder.example.references(), leaves_in(results))
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


def _containers(value: Any) -> Iterator[Any]:
    """The lists, tuples and dicts in a value, itself among them."""
    if isinstance(value, (list, tuple, dict)):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from _containers(item)


class _EscapedTensors:
    """Puts what eager PyTorch has in the place of tensors and numbers that are escaped."""

    def __init__(
        self, recorder: Recorder, values: ExampleValues, own: set[int], escaped: list[Any]
    ) -> None:
        """`own`: the ids of our own containers."""
        self._recorder = recorder
        self._example = values
        self._own = own | {id(escaped)}
        self._escaped = {id(item): item for item in escaped}
        self._own.add(id(self._escaped))
        self._made: dict[int, Any] = {}
        """By the id of an item, what is put in its place."""

    def replace_all(self) -> None:
        is_frozen = bool(gc.get_freeze_count())
        gc.unfreeze()  # a cache is older than the export
        try:
            holders = self._holders_of([*self._escaped.values()])
            if self._clear_caches(holders):
                holders = self._holders_of([*self._escaped.values()])
            for holder in holders:
                try:
                    self._replace(holder)
                except (AttributeError, TypeError) as error:  # of a slice, a partial
                    raise self._refusal(holder) from error
        finally:
            if is_frozen:
                gc.freeze()

    def _holders_of(self, items: list[Any]) -> list[Any]:
        """By a search of the whole heap: a tenth of a second, or more."""
        found = gc.get_referrers(*items) if items else ()
        return [holder for holder in found if holder is not items and not self._is_own(holder)]

    def _is_own(self, holder: Any) -> bool:
        kind = type(holder)
        return (
            isinstance(holder, FrameType)
            or id(holder) in self._own
            or kind.__module__.startswith(("sardonyx.", *_torch_private.HOLD_FAKES))
            or self._recorder.tensors.is_own_container(holder)
        )

    def _clear_caches(self, holders: list[Any]) -> bool:
        """Those of functools.lru_cache with an entry that holds an item, or whose key does."""
        holders = holders + self._holders_of([h for h in holders if isinstance(h, tuple)])
        entries = [h for h in holders if type(h).__name__ == "_lru_list_elem"]
        tables = [h for h in (*holders, *self._holders_of(entries)) if isinstance(h, dict)]
        found = (*holders, *entries, *self._holders_of(tables))
        caches = [h for h in found if isinstance(h, functools._lru_cache_wrapper)]
        for cache in caches:
            cache.cache_clear()
        return bool(caches)

    def _replace(self, holder: Any, steps: int = 3) -> None:
        if isinstance(holder, dict):
            # The namespace of a class has __module__; other dicts need no search of the heap.
            found = gc.get_referrers(holder) if "__module__" in holder else ()
            classes = [c for c in found if isinstance(c, type)]
            for key, value in list(holder.items()):
                if id(value) in self._escaped:
                    other = self._other(value, holder)
                    owner = next((c for c in classes if vars(c).get(key) is value), None)
                    if owner is None:
                        holder[key] = other
                    else:  # Python caches attributes of classes
                        setattr(owner, key, other)
            if any(id(key) in self._escaped for key in holder):
                entries = [(self._other(key, holder), value) for key, value in holder.items()]
                holder.clear()
                holder.update(entries)
        elif isinstance(holder, (list, deque)):
            for place, item in enumerate(holder):
                if id(item) in self._escaped:
                    holder[place] = self._other(item, holder)
        elif isinstance(holder, CellType):
            holder.cell_contents = self._other(holder.cell_contents, holder)
        elif isinstance(holder, (set, frozenset)):
            raise self._refusal(holder)
        elif isinstance(holder, tuple):
            make: Callable[[list[Any]], Any] = getattr(holder, "_make", type(holder))
            self._escaped[id(holder)] = holder
            self._made[id(holder)] = make([self._other(part, holder) for part in holder])
            for outer in self._holders_of([holder]) if steps else ():
                self._replace(outer, steps - 1)
        else:
            attributes = getattr(holder, "__dict__", None)
            if isinstance(attributes, dict):
                self._replace(attributes)
            kind: type = type(holder)
            for slot in _slots(kind):
                if id(getattr(holder, slot.__name__, None)) in self._escaped:
                    slot.__set__(holder, self._other(getattr(holder, slot.__name__), holder))

    def _other(self, item: Any, holder: Any) -> Any:
        """What is put in the place of an item; of anything else, that itself."""
        if id(item) not in self._escaped:
            return item
        if id(item) not in self._made:
            try:
                is_tensor = isinstance(item, torch.Tensor)
                real = self._example.of(item).clone() if is_tensor else self._example.real(item)
            except Exception as error:
                raise self._refusal(holder) from error
            self._made[id(item)] = real
        return self._made[id(item)]

    def _refusal(self, holder: Any) -> CaptureError:
        kind = type(holder)
        return CaptureError(
            "the model keeps a tensor or a size of this run in a"
            f" {kind.__module__}.{kind.__qualname__} that outlives it, where the recording"
            " cannot put what eager PyTorch has",
            [("try", "a buffer of the model, or a tensor that is made before the export")],
        )


@functools.cache
def _slots(kind: type) -> list[MemberDescriptorType]:
    held = [held for base in kind.__mro__ for held in vars(base).values()]
    return [slot for slot in held if isinstance(slot, MemberDescriptorType)]
