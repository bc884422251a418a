"""Several tensors made one."""

from __future__ import annotations

from itertools import pairwise

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange, is_number
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Tensor


@lowering("aten::cat", "aten::concat", "aten::concatenate")
def cat(b: Builder, tensors: list[Tensor], dim: int = 0) -> Tensor:
    operands = b.promote(*tensors)
    # A 1-D tensor without elements fits beside any shape, and adds nothing.
    filled = [t for t in operands if not (t.rank == 1 and is_number(t.dim(0), 0))]
    if len(filled) < 2:
        return (filled or operands)[0]
    return b.Concat(*filled, axis=dim % filled[0].rank)


@lowering("aten::stack", "aten::_stack")
def stack(b: Builder, tensors: list[Tensor], dim: int = 0) -> Tensor:
    axis = dim % (tensors[0].rank + 1)
    operands = [b.unsqueeze(t, [axis]) for t in b.promote(*tensors)]
    if len(operands) == 1:
        return operands[0]
    return b.Concat(*operands, axis=axis)


@lowering("aten::combinations")
def combinations(b: Builder, self: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    if r == 0:
        return b.full([0], 0, self.dtype)
    size = self.dim(0)
    if isinstance(size, int):
        chosen = torch.combinations(torch.arange(size), r, with_replacement)
        indices = b.const(chosen.reshape(-1, r))
    else:
        indices = _rising(b, size, r, strictly=not with_replacement)
    return b.Gather(self, indices, axis=0)


def _rising(b: Builder, size: Dim, count: int, strictly: bool) -> Tensor:
    """All rows of `count` indices below `size`, each larger than the one before."""
    index = arange(b, size)
    lines = [b.unsqueeze(index, [a for a in range(count) if a != k]) for k in range(count)]
    rises = b.expand(b.scalar(True), [size] * count)
    for left, right in pairwise(lines):
        rises = b.And(rises, b.op("Less" if strictly else "LessOrEqual", left, right))
    return b.transpose(b.NonZero(rises), [1, 0])
