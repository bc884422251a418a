"""Nested inputs and outputs: flattened to leaves with a path each, and put together again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sardonyx import _torch_private
from sardonyx.capture.key_value_cache import open_cache


@dataclass(frozen=True, slots=True)
class Leaf:
    """The place of a leaf; `index` counts leaves from the left."""

    index: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A container: its children by key, and how to make it from them."""

    keys: tuple[str, ...]
    children: tuple[Structure, ...]
    make: Callable[[list[Any]], Any]
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
    if is_named_tuple(tree):  # TorchScript makes classes of its own: the names of the fields count
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
        names = list(tree)
        return (
            [str(k) for k in names],
            list(tree.values()),
            lambda items: dict(zip(names, items, strict=True)),
        )
    registered = _torch_private.open_registered_pytree(tree)
    if registered is not None:
        return registered
    cache = open_cache(tree)
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
        names = list(tree)
        return (
            [str(k) for k in names],
            [tree[k] for k in names],
            lambda items: kind(dict(zip(names, items, strict=True))),
        )
    if isinstance(tree, list):
        return [str(i) for i in range(len(tree))], list(tree), kind
    return None


def _make_dataclass(kind: type, fields: list[str], items: list[Any]) -> Any:
    made: Any = object.__new__(kind)
    for name, item in zip(fields, items, strict=True):
        object.__setattr__(made, name, item)
    return made
