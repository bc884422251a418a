"""The key-value caches of Hugging Face Transformers as containers of tensors.

They are classes of their own, no pytrees; models take and return them as `past_key_values`.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

_TENSORS = {"key": "keys", "value": "values"}
_FIELDS = {
    "DynamicLayer": _TENSORS,
    # How much it has seen does not follow from what it still holds.
    "DynamicSlidingWindowLayer": {**_TENSORS, "cumulative_length": "cumulative_length"},
}
"""By the class of a layer: what it holds, under the name it gets and as its attribute."""


def open_cache(cache: Any) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]] | None:
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
