"""PyTorch's decomposition of one call into simpler ones, as nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.aten.graph import Argument, AtenGraph, Node, Value
from sardonyx.aten.pytree import tensors_in
from sardonyx.aten.schema import METADATA_WRITES, bind
from sardonyx.aten.type_inference import TypeInference


def expansion(
    graph: AtenGraph,
    node: Node,
    inference: TypeInference,
    fake_of: Callable[[Value], torch.Tensor],
) -> tuple[list[Node], list[Value]] | None:
    """Nodes, writes among them, that do what `node` does, and the values of its results."""
    values: dict[int, Value] = {id(fake_of(value)): value for value in node.inputs()}
    fakes = {name: inference.argument(a, fake_of) for name, a in node.arguments.items()}
    recorded = _torch_private.record_decomposition(node.op, fakes, inference.mode)
    if recorded is None:
        return None
    calls, result = recorded
    if any(op._schema.name in METADATA_WRITES for op, *_ in calls):
        return None  # the recorded tensor has its last shape only
    nodes = _nodes_of(graph, node, calls, values, inference)
    found = [values.get(id(r)) for r in tensors_in(result)]
    outputs = [v for v in found if v is not None]
    if len(found) != len(node.outputs) or len(outputs) != len(found):
        return None
    return nodes, outputs


def _nodes_of(
    graph: AtenGraph,
    node: Node,
    calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]],
    values: dict[int, Value],
    inference: TypeInference,
) -> list[Node]:
    def argument(item: Any) -> Argument:
        if isinstance(item, torch.Tensor):
            if id(item) not in values:
                made = inference.value(graph, item)
                if not _torch_private.is_fake(item):
                    made.constant = item
                values[id(item)] = made
            return values[id(item)]
        if isinstance(item, (list, tuple)):
            return [argument(i) for i in item]
        return _torch_private.dim_of(item)

    nodes: list[Node] = []
    for op, args, kwargs, result in calls:
        if not op._schema.is_mutable and not tensors_in(result):
            continue  # prim::device, aten::stride: queries
        arguments = bind(op, argument(args), {k: argument(v) for k, v in kwargs.items()})
        outputs = []
        for item in tensors_in(result):
            if id(item) in values:  # an in-place operator returns the tensor it wrote
                outputs.append(Value(values[id(item)].name, values[id(item)].type, fake=item))
            else:
                values[id(item)] = inference.value(graph, item)
                outputs.append(values[id(item)])
        nodes.append(Node(op, arguments, outputs, node.location))
    return nodes
