"""Several tensors made one."""

from __future__ import annotations

from functools import reduce
from itertools import combinations as choices
from itertools import combinations_with_replacement as choices_with_replacement
from itertools import pairwise

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import arange, is_number
from sardonyx.lower.kernels.windows import floor_divided
from sardonyx.lower.ops.view import atleast_2d, atleast_3d
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Tensor, product_of


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


@lowering("aten::dstack")
def dstack(b: Builder, tensors: list[Tensor]) -> Tensor:
    return cat(b, [atleast_3d(b, t) for t in tensors], 2)


@lowering("aten::block_diag")
def block_diag(b: Builder, tensors: list[Tensor]) -> Tensor:
    # Zeros of the blocks' own rows on both sides of each; a Pad would lack some dtypes.
    blocks = [atleast_2d(b, t) for t in b.promote(*tensors)]
    widths = [block.dim(1) for block in blocks]

    def total(sizes: list[Dim]) -> Dim:
        return reduce(lambda left, right: left + right, sizes, 0)

    rows = []
    for k, block in enumerate(blocks):
        before, after = total(widths[:k]), total(widths[k + 1 :])
        parts = [block]
        if not is_number(before, 0):
            parts.insert(0, b.full([block.dim(0), before], 0, block.dtype))
        if not is_number(after, 0):
            parts.append(b.full([block.dim(0), after], 0, block.dtype))
        rows.append(block if len(parts) == 1 else b.Concat(*parts, axis=1))
    return rows[0] if len(rows) == 1 else b.Concat(*rows, axis=0)


@lowering("aten::combinations")
def combinations(b: Builder, self: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    if r == 0:
        return b.full([0], 0, self.dtype)
    size = self.dim(0)
    if isinstance(size, int):
        chosen = list((choices_with_replacement if with_replacement else choices)(range(size), r))
        indices = b.const(torch.tensor(chosen, dtype=torch.int64).reshape(-1, r))
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


@lowering("aten::_chunk_cat")
def chunk_cat(b: Builder, tensors: list[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Each as many chunks, filled up with zeros; row k has the k-th chunk of all of them."""
    axis = dim % tensors[0].rank
    rows = []
    for tensor in b.promote(*tensors):
        dims = b.dims(tensor)
        size = dims[axis]
        piece = floor_divided(size + num_chunks - 1, num_chunks)
        ends: list[Dim] = [0] * tensor.rank * 2
        ends[tensor.rank + axis] = piece * num_chunks - size
        if not is_number(ends[tensor.rank + axis], 0):
            tensor = b.Pad(tensor, b.shape(ends), b.scalar(0, tensor.dtype))
        width = product_of([piece, *dims[axis + 1 :]])
        rows.append(b.reshape(tensor, [*dims[:axis], num_chunks, width]))
    return cat(b, rows, axis + 1)
