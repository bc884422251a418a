"""Pad by joining and by gathering, where attributes cannot say what is to be added."""

from __future__ import annotations

import onnx_ir as ir

from sardonyx.legalize.emitter import Emitter, constant_of
from sardonyx.legalize.rewrites.index_arithmetic import joined, larger, sizes_of


def _amounts(b: Emitter, pads: ir.Value, rank: int) -> list[tuple[ir.Value, ir.Value]]:
    """What is added before and after each axis, each a 1-D tensor of one element."""
    constant = constant_of(pads)
    if constant is not None:
        ends = [b.ints(int(amount)) for amount in constant]
    else:
        ends = [b.Gather(pads, b.ints(index), axis=0) for index in range(2 * rank)]
    return list(zip(ends[:rank], ends[rank:], strict=True))


def _is_known_to_be_zero(amount: ir.Value) -> bool:
    constant = constant_of(amount)
    return constant is not None and not constant.any()


def pad_by_joining(
    b: Emitter, x: ir.Value, pads: ir.Value, filler: ir.Value, rank: int
) -> ir.Value:
    """Constant padding; what is negative is cut off."""
    zero = b.ints(0)
    for axis, ends in enumerate(_amounts(b, pads, rank)):
        if all(_is_known_to_be_zero(end) for end in ends):
            continue
        sizes = sizes_of(b, x, rank)
        cut_before, cut_after = (larger(b, _negated(b, end), zero) for end in ends)
        if not (_is_known_to_be_zero(cut_before) and _is_known_to_be_zero(cut_after)):
            stop = b.Sub(sizes[axis], cut_after)
            x = b.Slice(x, cut_before, larger(b, stop, zero), b.ints(axis))
        before, after = (
            None if _adds_nothing(end) else _filled(b, filler, sizes, axis, larger(b, end, zero))
            for end in ends
        )
        x = b.Concat(*(part for part in (before, x, after) if part is not None), axis=axis)
    return x


def _adds_nothing(amount: ir.Value) -> bool:
    constant = constant_of(amount)
    return constant is not None and int(constant[0]) <= 0


def _filled(
    b: Emitter, filler: ir.Value, sizes: list[ir.Value], axis: int, count: ir.Value
) -> ir.Value:
    return b.Expand(filler, joined(b, [*sizes[:axis], count, *sizes[axis + 1 :]]))


def _negated(b: Emitter, amount: ir.Value) -> ir.Value:
    constant = constant_of(amount)
    return b.Neg(amount) if constant is None else b.ints(-int(constant[0]))
