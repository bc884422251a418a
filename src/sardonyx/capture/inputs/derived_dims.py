"""Dims that are computed from others, as `2*b` and `b + 1`, where no input has the other."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from sardonyx.aten.graph import (
    AtenGraph,
    Node,
    SourceLocation,
    SymbolSource,
    TensorType,
    Value,
)
from sardonyx.aten.schema import bind

aten = torch.ops.aten


def compute_roots(graph: AtenGraph) -> None:
    """Where inputs have a dim `k*b + c` and none has `b`, `b` is computed from the dim."""
    for value in graph.inputs:
        for axis, size in enumerate(value.shape):
            found = _linear(size)
            if found is not None and found[0] not in graph.symbols:
                root, factor, more = found
                sizes = _call(graph, aten._shape_as_tensor.default, [value], [len(value.shape)])
                number = _call(graph, aten.select.int, [sizes, 0, axis], [])
                number = _call(graph, aten.sub.Scalar, [number, more], [])
                number = _call(graph, aten.floor_divide.Scalar, [number, factor], [])
                graph.symbols[root] = SymbolSource(number, None)


def _linear(size: Any) -> tuple[sympy.Symbol, int, int] | None:
    """b, k and c of `k*b + c`."""
    if not isinstance(size, sympy.Expr) or size.is_Symbol or len(size.free_symbols) != 1:
        return None
    (root,) = size.free_symbols
    factor, more = size.coeff(root, 1), size.coeff(root, 0)
    is_linear = factor.is_Integer and more.is_Integer and factor * root + more == size
    return (root, int(factor), int(more)) if is_linear and factor > 0 else None


def _call(graph: AtenGraph, op: Any, args: list[Any], shape: list[int]) -> Value:
    name = f"root_{len(graph.nodes)}"
    made = Value(name, TensorType(torch.int64, tuple(shape)))
    graph.nodes.append(Node(op, bind(op, args), [made], SourceLocation()))
    return made
