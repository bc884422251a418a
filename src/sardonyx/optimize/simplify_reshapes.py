"""Remove reshapes to the shape a value already has; reshape once where it was done twice."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.optimize.facts import constant_ints, int_attribute, same_dim, same_shape
from sardonyx.optimize.rewrite import NodePass, bypass

_KEEPS_ELEMENT_ORDER = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})


class SimplifyReshapes(NodePass):
    op_types = frozenset({"Reshape", "Flatten", "Squeeze"})

    def rewrite(self, node: ir.Node, source: ir.Value) -> bool:
        if same_shape(source, node.outputs[0]) or _keeps_every_dim(node, source):
            return bypass(node, source)
        return node.op_type == "Reshape" and _skip_earlier_reshape(node, source)


def _keeps_every_dim(node: ir.Node, source: ir.Value) -> bool:
    if source.shape is None:
        return False
    if node.op_type == "Flatten":
        return len(source.shape) == 2 and int_attribute(node, "axis", 1) in (1, -1)
    if node.op_type != "Reshape":
        return False
    target, allow_zero = constant_ints(node.inputs[1]), int_attribute(node, "allowzero", 0)
    if target is None or allow_zero is None or len(target) != len(source.shape):
        return False
    # A single -1 takes what the other dims leave, so it too is the dim that was there.
    return all(
        size == -1 or (size == 0 and not allow_zero) or same_dim(size, dim)
        for size, dim in zip(target, source.shape, strict=True)
    )


def _skip_earlier_reshape(node: ir.Node, middle: ir.Value) -> bool:
    first = middle.producer()
    if first is None or first.op_type not in _KEEPS_ELEMENT_ORDER or first.domain != "":
        return False
    origin, target = first.inputs[0], constant_ints(node.inputs[1])
    if origin is None or target is None:
        return False
    if int_attribute(node, "allowzero", 0) != 1 and not all(
        _copies_the_same_dim(axis, middle, origin) for axis, size in enumerate(target) if size == 0
    ):
        return False
    node.replace_input_with(0, origin)
    return True


def _copies_the_same_dim(axis: int, middle: ir.Value, origin: ir.Value) -> bool:
    """Whether a 0 in the target shape means the same size with either value as the input."""
    if middle.shape is None or origin.shape is None:
        return False
    if axis >= min(len(middle.shape), len(origin.shape)):
        return False
    return same_dim(middle.shape[axis], origin.shape[axis])
