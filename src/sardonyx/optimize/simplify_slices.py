"""Remove a Slice that takes everything and a Pad that adds nothing."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.emitter import static_dim
from sardonyx.optimize.facts import constant_ints, rank, same_shape
from sardonyx.optimize.rewrite import NodePass, bypass

_TO_THE_END = 2**31 - 1
"""Exporters write the largest int32 or int64 for an open end; no dim is that large."""


class SimplifySlices(NodePass):
    op_types = frozenset({"Slice", "Pad"})

    def rewrite(self, node: ir.Node, source: ir.Value) -> bool:
        keeps_all = _pads_nothing(node) if node.op_type == "Pad" else _takes_all(node, source)
        return keeps_all and bypass(node, source)


def _pads_nothing(node: ir.Node) -> bool:
    pads = constant_ints(node.inputs[1]) if len(node.inputs) > 1 else None
    return pads is not None and not any(pads)


def _takes_all(node: ir.Node, source: ir.Value) -> bool:
    if len(node.inputs) < 3 or not _steps_by_one(node):
        return False
    # Without a step, a slice as long as its input starts at the first element.
    if same_shape(source, node.outputs[0]):
        return True
    starts, ends = constant_ints(node.inputs[1]), constant_ints(node.inputs[2])
    if starts is None or ends is None or any(starts):
        return False
    if all(end >= _TO_THE_END for end in ends):
        return True
    axes = _axes(node, len(starts), rank(source))
    return axes is not None and all(
        end >= _TO_THE_END or ((size := static_dim(source, axis)) is not None and end >= size)
        for end, axis in zip(ends, axes, strict=True)
    )


def _steps_by_one(node: ir.Node) -> bool:
    if len(node.inputs) < 5 or node.inputs[4] is None:
        return True
    steps = constant_ints(node.inputs[4])
    return steps is not None and all(step == 1 for step in steps)


def _axes(node: ir.Node, count: int, dims: int | None) -> list[int] | None:
    if len(node.inputs) < 4 or node.inputs[3] is None:
        return list(range(count))
    axes = constant_ints(node.inputs[3])
    if axes is None or dims is None:
        return None
    return [axis % dims for axis in axes]
