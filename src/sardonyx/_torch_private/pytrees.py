"""Users' registered pytrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils import _pytree as pytree

open_pytree, close_pytree = pytree.tree_flatten, pytree.tree_unflatten


def open_registered_pytree(
    tree: Any,
) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]] | None:
    """Keys, children and constructor of a user's registered pytree node."""
    definition = pytree.SUPPORTED_NODES.get(type(tree))
    if definition is None:
        return None
    if definition.flatten_with_keys_fn is not None:
        keyed, context = definition.flatten_with_keys_fn(tree)
        keys = [_key_text(key) for key, _ in keyed]
        children = [child for _, child in keyed]
    else:
        children, context = definition.flatten_fn(tree)
        children = list(children)
        keys = [str(i) for i in range(len(children))]
    return keys, children, lambda items: definition.unflatten_fn(items, context)


def _key_text(key: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)
