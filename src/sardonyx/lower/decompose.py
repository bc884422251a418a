"""PyTorch's own decomposition of one node, on demand, in place of the node."""

from __future__ import annotations

from typing import Any

import torch

from sardonyx import _torch_private
from sardonyx.capture.functionalize import functionalize_nodes
from sardonyx.capture.graph import Argument, AtenGraph, Node, Value
from sardonyx.capture.infer import TypeInference


def decompose(graph: AtenGraph, node: Node, inference: TypeInference) -> list[Node] | None:
    """Nodes that compute `node`'s outputs from its inputs; None where PyTorch has no expansion."""
    names = [a.name for a in node.op._schema.arguments]
    keyword_only = {a.name for a in node.op._schema.arguments if a.kwarg_only}
    values: dict[int, Value] = {}
    for value in node.inputs():
        values[id(inference.fake_of(value))] = value
    fakes = {name: inference.argument(node.arguments[name]) for name in names}
    try:
        recorded = _torch_private.record_decomposition(
            node.op,
            tuple(fakes[n] for n in names if n not in keyword_only),
            {n: fakes[n] for n in names if n in keyword_only},
            inference.mode,
        )
    except Exception:  # an expansion that does not fit these arguments is no expansion
        return None
    if recorded is None:
        return None
    calls, result = recorded
    expanded = _nodes_of(graph, node, calls, values, inference)
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    found = [values.get(id(r)) for r in results if isinstance(r, torch.Tensor)]
    if len(found) != len(node.outputs) or any(v is None for v in found):
        return None
    outputs: list[Argument] = [v for v in found if v is not None]
    expanded, outputs = functionalize_nodes(graph, expanded, outputs, inference)
    return _with_outputs(expanded, outputs, node)


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

    from sardonyx.capture.bind import bind

    expanded: list[Node] = []
    for op, args, kwargs, result in calls:
        if isinstance(result, torch.device):  # prim::device: asked, not computed
            continue
        arguments = bind(op, argument(args), {k: argument(v) for k, v in kwargs.items()})
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        outputs = []
        for item in results:
            if not isinstance(item, torch.Tensor):
                continue
            if id(item) in values:  # an in-place operator returns the tensor it wrote
                outputs.append(Value(values[id(item)].name, values[id(item)].type, fake=item))
            else:
                values[id(item)] = inference.value(graph, item)
                outputs.append(values[id(item)])
        expanded.append(Node(op, arguments, outputs, node.location))
    return expanded


def _with_outputs(expanded: list[Node], outputs: list[Argument], node: Node) -> list[Node] | None:
    """The expansion giving the very values that the rest of the graph knows."""
    for wanted, made in zip(node.outputs, outputs, strict=True):
        expanded.append(
            Node(
                torch.ops.aten.alias.default,
                {"self": made},
                [wanted],
                node.location,
            )
        )
    return expanded
