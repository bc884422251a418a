"""Several tensors made one."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.axes import is_number
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


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
