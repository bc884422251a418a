"""A cache of inferred types: models call an operator on tensors of one shape again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import ref

import sympy
import torch

from sardonyx import _torch_private
from sardonyx._torch_private import OpOverload

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class InferenceCache:
    """Results of operators by the types, sizes and strides of the arguments. A later call with the
    same key gets new fake tensors of the same kind, views of its arguments among them."""

    def __init__(self, mode: Any) -> None:
        self._mode = mode
        self._known: dict[Hashable, _Template | None] = {}
        self._keys: dict[int, tuple[Any, frozenset[sympy.Basic], ref[torch.Tensor]]] = {}
        """Keys of tensors by id; with the tensor, as an id can be reused."""

    def forget(self, fake: torch.Tensor) -> None:
        """Its sizes were changed in place."""
        self._keys.pop(id(fake), None)

    def result(self, op: OpOverload, arguments: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        symbols: set[sympy.Basic] = set()
        given: list[torch.Tensor] = []
        try:
            key = (op, *(self._key(a, symbols, given) for a in arguments.values()))
            known = self._known.get(key)
        except TypeError:  # an argument is not hashable
            return run()
        if known is not None:
            return self._made(known, given)
        result = run()
        if key not in self._known:
            self._known[key] = self._template(result, given, symbols)
        return result

    def _key(self, argument: Any, symbols: set[sympy.Basic], given: list[torch.Tensor]) -> Any:
        if isinstance(argument, torch.Tensor):
            given.append(argument)
            found = self._keys.get(id(argument))
            if found is None or found[2]() is not argument:
                found = self._keys[id(argument)] = *_tensor_key(argument), ref(argument)
            symbols |= found[1]
            return found[0]
        if isinstance(argument, (list, tuple)):
            return tuple(self._key(item, symbols, given) for item in argument)
        if isinstance(argument, _SYMBOLIC):
            expression = _torch_private.dim_of(argument)
            if isinstance(expression, sympy.Basic):
                symbols |= expression.free_symbols
            return type(argument), expression
        return type(argument), argument

    def _template(
        self, result: Any, given: list[torch.Tensor], symbols: set[sympy.Basic]
    ) -> _Template | None:
        tensors = result if isinstance(result, (list, tuple)) else [result]
        if not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
            return None
        made = []
        fresh: set[int] = set()
        storages = [
            _torch_private.storage_of(g) if _torch_private.is_plain(g) else None for g in given
        ]
        for tensor in tensors:
            if not _torch_private.is_plain(tensor) or any(tensor is g for g in given):
                return None
            of_result = _tensor_key(tensor)[1]
            if not of_result <= symbols:
                return None
            storage = _torch_private.storage_of(tensor)
            base = storages.index(storage) if storage in storages else None
            if base is None and storage in fresh:
                return None
            fresh.add(storage)
            offset = tensor.storage_offset()
            if base is None and _torch_private.dim_of(offset) != 0:
                return None
            sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
            device = _torch_private.fake_device(tensor)
            made.append(_Like(tensor.dtype, device, sizes, strides, offset, base))
        if any(_torch_private.depends_on_data(self._mode, s) for s in symbols):
            return None
        if any(one is not None and storages.count(one) > 1 for one in storages):
            return None
        return _Template(tuple(made), type(result) if isinstance(result, (list, tuple)) else None)

    def _made(self, template: _Template, given: list[torch.Tensor]) -> Any:
        made = [self._like(one, given) for one in template.tensors]
        return made[0] if template.container is None else template.container(made)

    def _like(self, like: _Like, given: list[torch.Tensor]) -> torch.Tensor:
        if like.base is None:
            return _torch_private.new_fake(
                self._mode, like.sizes, like.strides, like.dtype, like.device
            )
        base = given[like.base]
        return _torch_private.fake_view(base, like.sizes, like.strides, like.offset, like.dtype)


@dataclass(frozen=True, slots=True)
class _Like:
    dtype: torch.dtype
    device: torch.device
    sizes: tuple[Any, ...]
    strides: tuple[Any, ...]
    offset: Any
    base: int | None
    """The index of the argument that it is a view of."""


@dataclass(frozen=True, slots=True)
class _Template:
    tensors: tuple[_Like, ...]
    container: type | None


class _NoKey:
    """Equal to nothing."""


def _tensor_key(tensor: torch.Tensor) -> tuple[Any, frozenset[sympy.Basic]]:
    is_known = getattr(tensor, "constant", None) is not None  # the result may depend on its values
    if is_known or not (_torch_private.is_fake(tensor) and _torch_private.is_plain(tensor)):
        return _NoKey(), frozenset()
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    dims = tuple(map(_torch_private.dim_of, numbers))
    symbols = [d.free_symbols for d in dims if isinstance(d, sympy.Basic)]
    device = _torch_private.fake_device(tensor)
    return (tensor.dtype, device, dims), frozenset().union(*symbols)
