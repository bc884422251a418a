"""Which value of the graph each tensor of the model stands for."""

from __future__ import annotations

from collections import ChainMap, Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload
from sardonyx.aten.graph import AtenGraph, Value
from sardonyx.aten.location import Place
from sardonyx.aten.storage import storage_key
from sardonyx.aten.type_inference import type_of
from sardonyx.errors import CaptureError
from sardonyx.notes import error_at

_SMALL = 1 << 16
"""Elements of a tensor that is cheap to copy."""


class TensorValues:
    """A tensor that the model has is either a fake one, made by the recorder, or a real one from
    outside of the run: a parameter, a buffer, a constant. Both stand for a Value of the graph."""

    def __init__(
        self,
        graph: AtenGraph,
        mode: Any,
        names: Mapping[int, str],
        place: Callable[[], Place],
        constant_met: Callable[[Value], None],
    ) -> None:
        """`names`: what the tensors that the model holds are called, by id."""
        self._graph = graph
        self._mode = mode
        self._state_names = names
        self._place = place
        self._constant_met = constant_met
        self._values: MutableMapping[int, Value] = {}
        """By the id of a tensor that the model has; `_kept` keeps them from being another's."""
        self._values_with_fake: defaultdict[int, list[Value]] = defaultdict(list)
        """A tensor that is written is one value before and another after that."""
        self.sharing: Counter[int] = Counter()
        """How many tensors of the model are a value, by its id."""
        self._kept: list[Any] = []
        self._fakes: dict[int, torch.Tensor] = {}
        """Of real tensors, by their id."""
        self._by_memory: dict[Any, Value] = {}
        """Real tensors that are the same view of the same memory are one parameter."""
        self._shared_memory: dict[Any, torch.Tensor] = {}
        """By the memory of real tensors, the fake of the first that was seen."""
        self._name_counts: Counter[str] = Counter()

    def clear(self) -> None:
        for table in (self._values, self._values_with_fake, self._fakes, self._shared_memory):
            table.clear()
        self._kept.clear()

    def value_of(self, tensor: torch.Tensor) -> Value:
        value = self._values.get(id(tensor))
        if value is not None:
            return value
        if _torch_private.is_fake_of(self._mode, tensor):
            return self._unknown_fake(tensor)
        return self._outside_tensor(tensor)

    def fake_of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake tensor that stands for one of the model's."""
        if _torch_private.is_fake_of(self._mode, tensor):
            return tensor
        self.value_of(tensor)
        return self._fakes[id(tensor)]

    def register_new(self, name: str, fake: torch.Tensor) -> Value:
        """A new value for a new fake tensor."""
        value = Value(name, type_of(fake), fake=fake)
        self._graph.note_sizes(value)
        self.register(fake, value)
        return value

    def register(self, tensor: torch.Tensor, value: Value) -> None:
        self._values[id(tensor)] = value
        self.sharing[id(value)] += 1
        self._values_with_fake[id(value.fake)].append(value)
        self._kept.append(tensor)

    def register_written(self, tensor: torch.Tensor, value: Value) -> None:
        """A tensor that was written is another value."""
        self.register(tensor, value)
        if value.fake is not None:
            self._values[id(value.fake)] = value

    def keep_shape(self, fake: torch.Tensor) -> None:
        """Before the sizes of a fake tensor change: earlier values keep one of the old sizes."""
        before = _torch_private.fake_view(
            fake, fake.shape, fake.stride(), fake.storage_offset(), fake.dtype
        )
        for earlier in self._values_with_fake.pop(id(fake), ()):
            if earlier.fake is fake:
                earlier.fake = before

    @contextmanager
    def in_block(self) -> Iterator[None]:
        """Nodes after a block read what it writes as it was before: functionalization makes such
        writes outputs of the block."""
        outer = self._values
        inner: dict[int, Value] = {}
        self._values = ChainMap(inner, outer)
        try:
            yield
        finally:
            self._values = outer
            for key, value in inner.items():
                outer.setdefault(key, value)

    def _outside_tensor(self, tensor: torch.Tensor) -> Value:
        if _torch_private.is_wrapper_class(type(tensor)):
            kind = type(tensor).__qualname__
            raise self._refusal(f"the model returns a {kind}, which wraps other tensors")
        if tensor.layout != torch.strided or tensor.is_quantized:
            kind = "quantized" if tensor.is_quantized else str(tensor.layout)
            raise self._refusal(f"a {kind} tensor cannot be recorded")
        if _torch_private.lacks_memory(tensor):
            if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
                raise self._refusal(f"a {type(tensor).__name__} cannot be recorded")
            raise self._refusal("a tensor is made of the memory of another one, past PyTorch")
        key = storage_key(tensor)
        value = self._by_memory.get(key)
        if value is None:
            name = self._state_names.get(id(tensor)) or self.new_name("constant")
            constant = tensor.detach()
            if id(tensor) not in self._state_names and constant.numel() < _SMALL:
                constant = constant.clone()  # code outside of PyTorch may write it later
            value = Value(name, type_of(tensor), fake=self._new_fake(tensor), constant=constant)
            self._by_memory[key] = value
            self._graph.parameters[name] = value
            self._constant_met(value)
        assert value.fake is not None
        self._fakes[id(tensor)] = value.fake
        self.register(tensor, value)
        self._values[id(value.fake)] = value
        return value

    def _new_fake(self, tensor: torch.Tensor) -> torch.Tensor:
        """A fake of a real tensor; those that share memory have fakes that do."""
        if _torch_private.is_fake(tensor):
            return _torch_private.fake_from(self._mode, tensor)
        sizes, strides = tuple(tensor.shape), tensor.stride()
        if tensor.is_conj() or tensor.is_neg():
            return _torch_private.fake_from(self._mode, tensor)
        memory = _torch_private.storage_of(tensor)
        first = self._shared_memory.get(memory)
        if first is not None and _torch_private.fake_device(first) == tensor.device:
            offset = tensor.storage_offset()
            return _torch_private.fake_view(first, sizes, strides, offset, tensor.dtype)
        made = _torch_private.new_fake(self._mode, sizes, strides, tensor.dtype, tensor.device)
        self._shared_memory[memory] = made
        return made

    def _unknown_fake(self, tensor: torch.Tensor) -> Value:
        """A fake tensor that no recorded call gave: another object for the memory of a known one,
        as torch.nn.Parameter(x) is."""
        storage = _torch_private.storage_of(tensor)
        for known in reversed(self._kept):
            if (
                _torch_private.is_fake_of(self._mode, known)
                and known.dtype == tensor.dtype
                and _torch_private.storage_of(known) == storage
                and _place_in_memory(known) == _place_in_memory(tensor)
            ):
                value = self._values[id(known)]
                self.register(tensor, value)
                return value
        raise self._refusal(
            "a tensor was computed where no recording sees it: in another thread, or by code that"
            " leaves PyTorch's dispatcher"
        )

    def _refusal(self, text: str) -> CaptureError:
        return error_at(CaptureError, self._place(), text)

    def fake_of_value(self, value: Value) -> torch.Tensor:
        if value.fake is None:
            if value.constant is not None:
                value.fake = self._new_fake(value.constant)
            else:
                sizes = [_as_size(self._mode, size) for size in value.shape]
                value.fake = _torch_private.fake_contiguous(self._mode, sizes, value.dtype, None)
            self.register(value.fake, value)
        elif id(value.fake) not in self._values:
            self.register(value.fake, value)
        return value.fake

    def state_name(self, tensor: torch.Tensor) -> str | None:
        return self._state_names.get(id(tensor))

    def keep(self, tensor: torch.Tensor) -> None:
        """Lets no other object have its id."""
        self._kept.append(tensor)

    def references(self) -> Iterator[Any]:
        """The tensors that the recorder itself refers to, once for each reference."""
        yield from self._kept
        yield from self._fakes.values()
        yield from self._shared_memory.values()

    def values(self) -> list[Value]:
        found = [*self._values.values()]
        for values in self._values_with_fake.values():
            found += values
        return found

    def is_own_container(self, container: Any) -> bool:
        return any(container is c for c in (self._kept, self._fakes, self._shared_memory))

    def new_name(self, base: str) -> str:
        count = self._name_counts[base]
        self._name_counts[base] += 1
        return f"{base}_{count}" if count else base


def _place_in_memory(tensor: torch.Tensor) -> tuple[Any, ...]:
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    return tuple(map(_torch_private.dim_of, numbers))


def _as_size(mode: Any, size: Any) -> Any:
    return _torch_private.sym_int(mode, size) if isinstance(size, sympy.Expr) else size


def with_arguments(op: OpOverload, fakes: dict[str, Any], result: Any) -> Any:
    """The result with the arguments that the operator writes and returns."""
    returned = _torch_private.returned_arguments(op)
    if not returned:
        return result
    if not isinstance(result, (list, tuple)):
        return fakes[returned[0]]
    return tuple(fakes[returned[i]] if i in returned else r for i, r in enumerate(result))


def pairs(fakes: Any, given: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The fake tensors of a call, each with what the model gave."""
    if isinstance(fakes, dict):
        for name, fake in fakes.items():
            yield from pairs(fake, given[name])
    elif isinstance(fakes, torch.Tensor):
        yield fakes, given
    elif isinstance(fakes, (list, tuple)):
        for fake, item in zip(fakes, given, strict=True):
            yield from pairs(fake, item)


def replaced(result: Any, originals: Mapping[int, torch.Tensor]) -> Any:
    """A result in which the tensors that the model gave are those objects again."""
    if isinstance(result, torch.Tensor):
        return originals.get(id(result), result)
    if isinstance(result, (list, tuple)):
        return type(result)(replaced(item, originals) for item in result)
    return result
