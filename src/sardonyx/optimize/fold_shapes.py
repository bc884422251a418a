"""Compute shape arithmetic at export time, as far as the sizes are known.

Besides whole constants, a Reshape or Expand whose target has symbolic sizes gets a constant
target where ONNX can say it: -1 for the one unknown size, 0 for a size the input has in the same
place, 1 for a size that an Expand leaves alone.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from sardonyx.lower.onnx_types.subgraphs import roots_of, subgraphs_of
from sardonyx.optimize.facts import (
    INTEGER_TYPES,
    MAX_KNOWN_ELEMENTS,
    constant_tensor,
    int_attribute,
)
from sardonyx.optimize.rewrite import insert_constant, replace_with_constant
from sardonyx.optimize.shape_arithmetic import RULES, Element, KnownInts, known_dims, known_result


class FoldShapes(ir.passes.InPlacePass):
    def call(self, model: ir.Model) -> ir.passes.PassResult:
        modified = False
        for root in roots_of(model):
            modified |= _Sweep().fold(root)
        return ir.passes.PassResult(model, modified=modified)


class _Sweep:
    """One walk in execution order; bodies see what is known outside them."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, KnownInts | None] = {}

    def fold(self, graph: ir.Graph) -> bool:
        modified = False
        for node in graph:
            if node.domain == "":
                if node.op_type in RULES:
                    modified |= self._fold_node(node)
                if node.op_type in ("Reshape", "Expand"):
                    modified |= self._fix_target_shape(node)
            for body in subgraphs_of(node):
                modified |= self.fold(body)
        return modified

    def _fold_node(self, node: ir.Node) -> bool:
        output = node.outputs[0]
        if not _may_hold_sizes(output, node):
            return False
        result = known_result(node, [self._known_ints(value) for value in node.inputs])
        if result is None:
            return False
        self._known[output] = result
        if result.numbers is None:
            return False
        array = np.array(result.numbers, dtype=result.dtype.numpy())
        tensor = ir.tensor(array.reshape(() if result.is_scalar else -1), dtype=result.dtype)
        self._known[replace_with_constant(node, tensor)] = result
        return True

    def _known_ints(self, value: ir.Value | None) -> KnownInts | None:
        if value is None:
            return None
        if value not in self._known:
            self._known[value] = _stored_ints(value)
        return self._known[value]

    def _fix_target_shape(self, node: ir.Node) -> bool:
        source, shape = node.inputs[0], node.inputs[1]
        if source is None or shape is None or constant_tensor(shape) is not None:
            return False
        target = self._known_ints(shape)
        if target is None or target.dtype != ir.DataType.INT64:
            return False
        if node.op_type == "Expand":
            fixed = _fixed_expand_target(target.elements, known_dims(source))
        elif int_attribute(node, "allowzero", 0) is None:
            return False
        else:
            fixed = _fixed_reshape_target(target.elements, known_dims(source))
        if fixed is None:
            return False
        if node.op_type == "Reshape":
            node.attributes.pop("allowzero", None)
        tensor = ir.tensor(np.array(fixed, dtype=np.int64))
        name = None if node.outputs[0].name is None else f"{node.outputs[0].name}_shape"
        node.replace_input_with(1, insert_constant(tensor, name, before=node))
        return True


def _may_hold_sizes(output: ir.Value, node: ir.Node) -> bool:
    if output.dtype is not None and output.dtype not in INTEGER_TYPES:
        return False
    return len(node.outputs) == 1 and (output.shape is None or len(output.shape) <= 1)


def _stored_ints(value: ir.Value) -> KnownInts | None:
    """What a constant holds; of any other small int vector, only how long it is."""
    tensor = constant_tensor(value)
    if tensor is not None:
        dims = tuple(tensor.shape)
        if tensor.dtype not in INTEGER_TYPES or len(dims) > 1 or tensor.size > MAX_KNOWN_ELEMENTS:
            return None
        numbers = tuple(int(number) for number in tensor.numpy().reshape(-1))
        return KnownInts(tensor.dtype, numbers, is_scalar=not dims)
    if value.dtype is None or value.dtype not in INTEGER_TYPES or value.shape is None:
        return None
    if len(value.shape) > 1:
        return None
    count = value.shape[0] if len(value.shape) else 1
    if not isinstance(count, int) or count > MAX_KNOWN_ELEMENTS:
        return None
    return KnownInts(value.dtype, (None,) * count, is_scalar=not len(value.shape))


def _fixed_reshape_target(
    target: tuple[Element, ...], source: tuple[Element, ...] | None
) -> list[int] | None:
    numbers = [size for size in target if isinstance(size, int)]
    if any(size <= 0 for size in numbers):
        return None
    if len(numbers) == len(target) - 1:
        return [size if isinstance(size, int) else -1 for size in target]
    # -1 cannot be worked out beside a copied size that turns out to be 0: copies only.
    if source is None or not all(
        isinstance(size, int) or (size is not None and source[axis : axis + 1] == (size,))
        for axis, size in enumerate(target)
    ):
        return None
    return [size if isinstance(size, int) else 0 for size in target]


def _fixed_expand_target(
    target: tuple[Element, ...], source: tuple[Element, ...] | None
) -> list[int] | None:
    if source is None or len(target) == 0:
        return None
    offset = len(source) - len(target)
    fixed: list[int] = []
    for axis, size in enumerate(target):
        if isinstance(size, int):
            fixed.append(size)
        elif size is not None and axis + offset >= 0 and source[axis + offset] == size:
            fixed.append(1)
        else:
            return None
    return fixed
