"""Nodes that a model asks for by their names: PyTorch has zeros in the place of their results."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from sardonyx._torch_private import OpOverload
from sardonyx.aten import pytree
from sardonyx.aten.location import innermost_user_place, place_text
from sardonyx.aten.schema import bind

_ASK_FOR_NODES = frozenset(
    ("onnx_symbolic::_symbolic", "onnx_symbolic::_symbolic_multi_out", "sardonyx::symbolic")
)
"""The operators behind `symbolic` and `symbolic_multi_out`, PyTorch's and ours."""


def _asks_for_node(func: Any) -> bool:
    return isinstance(func, OpOverload) and func._schema.name in _ASK_FOR_NODES


class PlaceholderOnes(TorchFunctionMode):
    """Ones in the place of those zeros: what changes by it stands on them."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[str, None] = {}
        """Their names, each with the line that asks for it."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not _asks_for_node(func):
            return result
        given = bind(func, args, kwargs or {})
        domain, name = given["domain"], given["op_type"]
        told = f"{domain}::{name}" if domain else name
        place = place_text(innermost_user_place(sys._getframe(1)))
        self.nodes[f"{told} ({place})" if place else told] = None
        leaves, structure = pytree.flatten(result)
        return pytree.unflatten(structure, [torch.ones_like(leaf) for leaf in leaves])
