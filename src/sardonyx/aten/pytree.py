"""Nested inputs and outputs: flattened to leaves with a path each, and unflattened."""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from sardonyx import _torch_private


@dataclass(frozen=True, slots=True)
class Leaf:
    """The place of a leaf; `index` counts leaves from the left."""

    index: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A container: its children by key, and how to make it from them."""

    keys: tuple[str, ...]
    children: tuple[Structure, ...]
    make: Callable[[list[Any]], Any] = dataclasses.field(compare=False)
    type_name: str


Structure = Leaf | Branch


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    if isinstance(structure, Leaf):
        return leaves[structure.index]
    return structure.make([unflatten(child, leaves) for child in structure.children])


def paths(structure: Structure, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every leaf, in order: keys, attribute names and positions."""
    if isinstance(structure, Leaf):
        yield prefix
        return
    for key, child in zip(structure.keys, structure.children, strict=True):
        yield from paths(child, (*prefix, key))


def same_structure(left: Structure, right: Structure) -> bool:
    if isinstance(left, Leaf) or isinstance(right, Leaf):
        return isinstance(left, Leaf) and isinstance(right, Leaf)
    return (left.keys, left.type_name) == (right.keys, right.type_name) and all(
        same_structure(a, b) for a, b in zip(left.children, right.children, strict=True)
    )


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    opened = open_container(tree)
    if opened is None:
        leaves.append(tree)
        return Leaf(len(leaves) - 1)
    keys, children, make = opened
    return Branch(
        tuple(keys),
        tuple(_flatten(child, leaves) for child in children),
        make,
        _type_name(tree),
    )


def _type_name(tree: Any) -> str:
    if is_named_tuple(tree):  # TorchScript makes new classes: the field names count
        return "NamedTuple"
    return f"{type(tree).__module__}.{type(tree).__qualname__}"


def is_named_tuple(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def open_container(tree: Any) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]] | None:
    """Keys, children and constructor of a container; None for a leaf."""
    kind = type(tree)
    if kind in (tuple, list):
        return [str(i) for i in range(len(tree))], list(tree), kind
    if is_named_tuple(tree):
        return list(tree._fields), list(tree), lambda items: kind(*items)
    if kind is dict:
        return _open_mapping(tree)
    registered = _torch_private.open_registered_pytree(tree)
    if registered is not None:
        return registered
    cache = _open_cache(tree)
    if cache is not None:
        return cache
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        fields = [f.name for f in dataclasses.fields(tree)]
        return (
            fields,
            [getattr(tree, f) for f in fields],
            lambda items: _make_dataclass(kind, fields, items),
        )
    if isinstance(tree, Mapping):
        return _open_mapping(tree)
    if isinstance(tree, list):
        return [str(i) for i in range(len(tree))], list(tree), kind
    return None


def _open_mapping(tree: Any) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]]:
    kind, names = type(tree), list(tree)
    return (
        [str(name) for name in names],
        [tree[name] for name in names],
        lambda items: kind(dict(zip(names, items, strict=True))),
    )


def _make_dataclass(kind: type, fields: list[str], items: list[Any]) -> Any:
    made: Any = object.__new__(kind)
    for name, item in zip(fields, items, strict=True):
        object.__setattr__(made, name, item)
    return made


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors among the arguments or the results of a call, those in lists and slices too."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def leaves_in(value: Any) -> Iterator[Any]:
    """What nested lists, tuples and dicts hold; `flatten` knows more containers, and is slower."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves_in(item)
    else:
        yield value


# The key-value caches of Hugging Face Transformers, which models take and return as
# `past_key_values`, are not registered as pytrees.

_TENSORS = {"key": "keys", "value": "values"}
_FIELDS = {
    "DynamicLayer": _TENSORS,
    # The number of tokens it has seen does not follow from what it still holds.
    "DynamicSlidingWindowLayer": {**_TENSORS, "cumulative_length": "cumulative_length"},
}
"""By the class of a layer: the name of each field, and its attribute."""


def _open_cache(cache: Any) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]] | None:
    """Keys, children and constructor of a cache; None for everything else."""
    library = sys.modules.get("transformers.cache_utils")
    if library is None:
        return None
    kind = type(cache)
    if kind is getattr(library, "EncoderDecoderCache", None):
        parts = ["self_attention_cache", "cross_attention_cache"]
        return parts, [getattr(cache, part) for part in parts], lambda items: kind(*items)
    layers = getattr(cache, "layers", None)
    if kind is not getattr(library, "DynamicCache", None) or not isinstance(layers, list):
        return None
    if any(type(layer).__name__ not in _FIELDS for layer in layers):
        return None
    empty = copy.copy(cache)
    empty.layers = [_filled(layer, dict.fromkeys(_TENSORS)) for layer in layers]

    def make(items: list[Any]) -> Any:
        made = copy.copy(empty)
        made.layers = [_filled(*pair) for pair in zip(empty.layers, items, strict=True)]
        return made

    return [str(i) for i in range(len(layers))], [_content(layer) for layer in layers], make


def _content(layer: Any) -> dict[str, Any]:
    fields = _FIELDS[type(layer).__name__]
    return {name: getattr(layer, attribute) for name, attribute in fields.items()}


def _filled(layer: Any, content: dict[str, Any]) -> Any:
    made = copy.copy(layer)
    for name, item in content.items():
        setattr(made, _FIELDS[type(layer).__name__][name], item)
    made.is_initialized = made.keys is not None
    if made.is_initialized:
        made.dtype, made.device = made.keys.dtype, made.keys.device
    return made
