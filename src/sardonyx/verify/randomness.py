"""Which outputs of a model are drawn: what the graph says, not what two runs happen to give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir

_RANDOM_OPERATORS = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)


def random_outputs(model: ir.Model) -> frozenset[str]:
    """The names of the outputs that some random operator leads to."""
    random_functions = _random_functions(model)
    drawn: set[ir.Value] = set()
    for node in model.graph:
        inside = list(_with_bodies(node))
        if any(
            _draws(each)
            or each.op_identifier() in random_functions
            or any(value in drawn for value in each.inputs)
            for each in inside
        ):
            drawn.update(node.outputs)
    return frozenset(_names(value for value in model.graph.outputs if value in drawn))


def _random_functions(model: ir.Model) -> set[ir.OperatorIdentifier]:
    """Those that draw, or call one that does."""
    random: set[ir.OperatorIdentifier] = set()
    while True:
        found = {
            identifier
            for identifier, function in model.functions.items()
            if any(
                _draws(node) or node.op_identifier() in random
                for node in ir.traversal.RecursiveGraphIterator(function)
            )
        }
        if found == random:
            return random
        random = found


def _draws(node: ir.Node) -> bool:
    if node.domain not in ("", "ai.onnx"):
        return False
    return node.op_type in _RANDOM_OPERATORS or (node.op_type == "Dropout" and _is_training(node))


def _is_training(dropout: ir.Node) -> bool:
    mode = dropout.inputs[2] if len(dropout.inputs) > 2 else None
    if mode is None:
        return False
    constant = ir.convenience.get_const_tensor(mode)
    return constant is None or bool(constant.numpy())


def _with_bodies(node: ir.Node) -> Iterator[ir.Node]:
    """The node, and what its branches or its loop hold."""
    yield node
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield from ir.traversal.RecursiveGraphIterator(attribute.as_graph())


def _names(values: Iterable[ir.Value]) -> Iterator[str]:
    for value in values:
        if value.name is not None:
            yield value.name
