"""Nodes that a model asks for by their names: PyTorch has zeros in the place of their results."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from sardonyx.capture import tree
from sardonyx.capture.asked_nodes import asks_for_node
from sardonyx.capture.bind import bind
from sardonyx.capture.location import innermost_user_place, place_text


class OtherStandIns(TorchFunctionMode):
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
        if not asks_for_node(func):
            return result
        given = bind(func, args, kwargs or {})
        domain, name = given["domain"], given["op_type"]
        told = f"{domain}::{name}" if domain else name
        place = place_text(innermost_user_place(sys._getframe(1)))
        self.nodes[f"{told} ({place})" if place else told] = None
        leaves, structure = tree.flatten(result)
        return tree.unflatten(structure, [torch.ones_like(leaf) for leaf in leaves])
