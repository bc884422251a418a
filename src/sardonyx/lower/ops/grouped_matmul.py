"""Products of matrices group by group, the groups being stretches of a dim: mixtures of experts."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import loops
from sardonyx.lower.kernels.contraction import matmul
from sardonyx.lower.kernels.matrices import at, transposed
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("aten::_grouped_mm")
def grouped_mm(
    b: Builder,
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    if offs is None:
        return b.cast(matmul(b, self, mat2), out_dtype)
    ends = b.cast(offs, torch.int64)
    if self.rank == 2 and mat2.rank == 2:
        product = _matrix_of_each_group(b, self, mat2, ends)
    elif self.rank == 2:
        product = _rows_of_each_group(b, self, mat2, ends)
    else:
        flipped = _rows_of_each_group(b, transposed(b, mat2), transposed(b, self), ends)
        product = transposed(b, flipped)
    return b.cast(product, out_dtype)


def _matrix_of_each_group(b: Builder, left: Tensor, right: Tensor, ends: Tensor) -> Tensor:
    """The dim that is summed over has the groups: a product of matrices for each."""

    def step(group: Tensor, carried: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        start, end = carried[0], at(b, ends, 0, b.reshape(group, [1]))
        columns, rows = b.slice(left, 1, start, end), b.slice(right, 0, start, end)
        return [end], [b.with_shape(b.MatMul(columns, rows), [left.dim(0), right.dim(1)])]

    _, (products,) = loops.run_steps(b, ends.dim(0), step, [b.const([0])])
    return products


def _rows_of_each_group(b: Builder, left: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    """The rows of `left` have the groups. What lies behind the last one, of which PyTorch leaves
    the result open, is zero."""
    columns = matrices.dim(-1)
    nothing = b.Identity(b.full([0, columns], 0, left.dtype))
    nothing.shape = (None, columns)  # of what it becomes

    def step(group: Tensor, carried: list[Tensor]) -> list[Tensor]:
        done, start = carried
        end = at(b, ends, 0, group)
        matrix = b.squeeze(at(b, matrices, 0, group), [0])
        return [b.Concat(done, b.MatMul(b.slice(left, 0, start, end), matrix), axis=0), end]

    products, last = loops.repeat(b, ends.dim(0), [nothing, b.const([0])], step)
    rest = b.full([1, columns], 0, left.dtype)
    count = b.Sub(b.size(left.dim(0)), last)
    behind = b.Expand(rest, b.Concat(count, b.const([1]), axis=0))
    whole = b.Concat(products, behind, axis=0)
    return b.with_shape(whole, [left.dim(0), columns])
