"""Remove casts to the type a value already has, and casts through a type that loses nothing."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.optimize.facts import int_attribute
from sardonyx.optimize.rewrite import NodePass, bypass

_SIGNIFICAND_BITS = {
    ir.DataType.FLOAT16: 11,
    ir.DataType.BFLOAT16: 8,
    ir.DataType.FLOAT: 24,
    ir.DataType.DOUBLE: 53,
}
_INTEGERS = frozenset({
    ir.DataType.BOOL, ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32,
    ir.DataType.UINT64, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64,
})  # fmt: skip


class SimplifyCasts(NodePass):
    op_types = frozenset({"Cast", "CastLike"})

    def rewrite(self, node: ir.Node, source: ir.Value) -> bool:
        target = _target_type(node)
        if target is None:
            return False
        if source.dtype == target:
            return bypass(node, source)
        return node.op_type == "Cast" and _skip_lossless_cast(node, source, target)


def _target_type(node: ir.Node) -> ir.DataType | None:
    if node.op_type == "CastLike":
        return None if node.inputs[1] is None else node.inputs[1].dtype
    to = int_attribute(node, "to", 0)
    return ir.DataType(to) if to else None


def _skip_lossless_cast(node: ir.Node, middle: ir.Value, target: ir.DataType) -> bool:
    first = middle.producer()
    if first is None or first.op_type != "Cast" or first.domain != "":
        return False
    origin, through = first.inputs[0], _target_type(first)
    if origin is None or origin.dtype is None or through is None:
        return False
    if not is_lossless(origin.dtype, through):
        return False
    if origin.dtype == target:
        return bypass(node, origin)
    # The narrow formats (float8, int4, ...) saturate in ways that depend on where they come from.
    if target not in _INTEGERS and target not in _SIGNIFICAND_BITS:
        return False
    node.replace_input_with(0, origin)
    return True


def is_lossless(source: ir.DataType, target: ir.DataType) -> bool:
    """Whether every value of `source` is a value of `target`."""
    if source == target:
        return True
    if source in _SIGNIFICAND_BITS:
        return target in _SIGNIFICAND_BITS and source.bitwidth < target.bitwidth
    if source not in _INTEGERS:
        return False
    if target in _SIGNIFICAND_BITS:
        return _magnitude_bits(source) <= _SIGNIFICAND_BITS[target]
    keeps_sign = target.is_signed() or not source.is_signed()
    fits = target in _INTEGERS and _magnitude_bits(source) <= _magnitude_bits(target)
    return fits and keeps_sign


def _magnitude_bits(dtype: ir.DataType) -> int:
    return 1 if dtype == ir.DataType.BOOL else dtype.bitwidth - dtype.is_signed()
