"""Nodes that a model asks for by their names (`sardonyx.ops.symbolic`)."""

from __future__ import annotations

from typing import Any

from sardonyx._torch_private import OpOverload

_ASK_FOR_NODES = frozenset(
    ("onnx_symbolic::_symbolic", "onnx_symbolic::_symbolic_multi_out", "sardonyx::symbolic")
)
"""The operators behind `symbolic` and `symbolic_multi_out`, PyTorch's and ours."""


def asks_for_node(func: Any) -> bool:
    return isinstance(func, OpOverload) and func._schema.name in _ASK_FOR_NODES
