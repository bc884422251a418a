"""Models whose weights are given when the file is written (`enable_fake_mode`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten import pytree
from sardonyx.aten.module_tree import weights_of
from sardonyx.errors import InvalidOptionError
from sardonyx.options import Options


def is_weightless(model: Any) -> bool:
    return any(map(_torch_private.is_weightless, weights_of(model)))


def check_options(options: Options) -> None:
    if options.capture in ("trace", "script"):
        raise InvalidOptionError(
            f'a model without weights cannot be recorded by capture="{options.capture}",'
            " which runs it",
            [("try", 'capture="export"')],
        )
    if options.verify:
        raise InvalidOptionError(
            "verify=True needs the model's weights, and it was made without them"
        )


def with_values(arguments: Any) -> Any:
    """The example inputs, zeros in place of those that were made without values."""
    if not any(map(_torch_private.is_weightless, pytree.flatten(arguments)[0])):
        return arguments
    return pytree.map_leaves(_with_value, arguments)


def _with_value(leaf: Any) -> Any:
    lacks_values = _torch_private.is_weightless(leaf)
    return torch.zeros(leaf.shape, dtype=leaf.dtype) if lacks_values else leaf


def names_of_tied_weights(model: Any) -> dict[str, Sequence[str]]:
    """For each name of a weight that has several, all of them."""
    if not isinstance(model, torch.nn.Module):
        return {}
    groups: dict[int, list[str]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        groups.setdefault(id(tensor), []).append(name)
    return {name: names for names in groups.values() if len(names) > 1 for name in names}
