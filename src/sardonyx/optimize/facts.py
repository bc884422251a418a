"""What is known of a value or an attribute without running the model."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from sardonyx.lower.onnx_types.subgraphs import with_bodies

MAX_KNOWN_ELEMENTS = 64
"""Constants up to this size are read as numbers; larger ones are never touched."""

INTEGER_TYPES = frozenset({ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL})


REPLACEABLE = "sardonyx.replaceable"
"""In the `meta` of an initializer: whether whoever runs the file may put another in its place."""


def constant_tensor(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The tensor a value always holds; an initializer that is also an input may be overridden."""
    if value is None or value.is_graph_input():
        return None
    if value.is_initializer():
        return None if value.meta.get(REPLACEABLE, False) else value.const_value
    producer = value.producer()
    if producer is None or producer.op_type != "Constant" or producer.domain != "":
        return None
    attribute = producer.attributes.get("value")
    if attribute is not None:
        return None if attribute.is_ref() else attribute.value
    for name in ("value_int", "value_ints"):
        attribute = producer.attributes.get(name)
        if attribute is not None and not attribute.is_ref():
            return ir.tensor(attribute.value, dtype=ir.DataType.INT64)
    return None


def constant_ints(value: ir.Value | None) -> list[int] | None:
    """The elements of a small integer or bool constant, flattened."""
    tensor = constant_tensor(value)
    if tensor is None or tensor.dtype not in INTEGER_TYPES or tensor.size > MAX_KNOWN_ELEMENTS:
        return None
    return [int(element) for element in tensor.numpy().reshape(-1)]


def rank(value: ir.Value | None) -> int | None:
    return None if value is None or value.shape is None else len(value.shape)


def same_dim(left: int | ir.SymbolicDim, right: int | ir.SymbolicDim) -> bool:
    """Provably equal: the same number, or the same named symbol."""
    if isinstance(left, ir.SymbolicDim):
        return left.value is not None and isinstance(right, ir.SymbolicDim) and left == right
    return not isinstance(right, ir.SymbolicDim) and left == right


def same_shape(left: ir.Value | None, right: ir.Value | None) -> bool:
    if left is None or right is None or left.shape is None or right.shape is None:
        return False
    return len(left.shape) == len(right.shape) and all(
        same_dim(a, b) for a, b in zip(left.shape, right.shape, strict=True)
    )


def int_attribute(node: ir.Node, name: str, default: int) -> int | None:
    """The attribute's number; None where it is a reference to a function's attribute."""
    attribute = node.attributes.get(name)
    if attribute is None:
        return default
    return None if attribute.is_ref() else attribute.as_int()


def ints_attribute(node: ir.Node, name: str) -> tuple[int, ...] | None:
    attribute = node.attributes.get(name)
    return None if attribute is None or attribute.is_ref() else tuple(attribute.as_ints())


def axes_of(node: ir.Node, axes_rank: int | None) -> tuple[int, ...] | None:
    """The sorted, non-negative axes of a Squeeze or Unsqueeze, counted in `axes_rank` dims."""
    axes: list[int] | tuple[int, ...] | None
    if len(node.inputs) > 1:
        axes = constant_ints(node.inputs[1])
    else:
        axes = ints_attribute(node, "axes")
    if axes is None or (axes_rank is None and min(axes, default=0) < 0):
        return None
    return tuple(sorted(axis + (axes_rank or 0) if axis < 0 else axis for axis in axes))


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


def draws(node: ir.Node) -> bool:
    """Whether an operator of ONNX gives other values each time."""
    if node.domain not in ("", "ai.onnx"):
        return False
    is_dropout = node.op_type == "Dropout"
    return node.op_type in _RANDOM_OPERATORS or (is_dropout and is_training_dropout(node))


def functions_that_run(
    model: ir.Model, is_meant: Callable[[ir.Node], bool]
) -> frozenset[ir.OperatorIdentifier]:
    """The model's own functions that have such a node, or call one that has."""
    found: frozenset[ir.OperatorIdentifier] = frozenset()
    while True:
        known = found
        found = frozenset(
            identifier
            for identifier, function in model.functions.items()
            if any(is_meant(n) or n.op_identifier() in known for n in with_bodies(function))
        )
        if found == known:
            return found


def is_training_dropout(node: ir.Node) -> bool:
    """Whether the Dropout drops, or may: its training_mode is not known to be false."""
    training_mode = node.inputs[2] if len(node.inputs) > 2 else None
    return training_mode is not None and constant_ints(training_mode) != [0]
