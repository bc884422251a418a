"""Logical operators, which see every number as a truth value, and bitwise ones."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor


@lowering("aten::logical_and", op="And")
@lowering("aten::logical_or", op="Or")
@lowering("aten::logical_xor", op="Xor")
def logical(b: Builder, self: Tensor, other: Tensor, op: str) -> Tensor:
    return b.op(op, b.cast(self, torch.bool), b.cast(other, torch.bool))


@lowering("aten::logical_not")
def logical_not(b: Builder, self: Tensor) -> Tensor:
    return elementwise.is_zero(b, self)


def _overloads(name: str, operator: str, *, scalar: str = "Scalar") -> list[str]:
    kinds = ("Tensor", scalar, "Scalar_Tensor")
    symbols = [f"aten::__{operator}__.{kind}" for kind in ("Tensor", "Scalar")]
    return [*(f"aten::bitwise_{name}.{kind}" for kind in kinds), *symbols]


@lowering(*_overloads("and", "and"), op="And")
@lowering(*_overloads("or", "or"), op="Or")
@lowering(*_overloads("xor", "xor"), op="Xor")
def bitwise(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar, op: str) -> Tensor:
    x, y = b.promote(self, other)
    return b.op(op if x.dtype == torch.bool else f"Bitwise{op}", x, y)


@lowering("aten::bitwise_not")
def bitwise_not(b: Builder, self: Tensor) -> Tensor:
    return b.Not(self) if self.dtype == torch.bool else b.BitwiseNot(self)


@lowering(*_overloads("left_shift", "lshift", scalar="Tensor_Scalar"), direction="LEFT")
@lowering(*_overloads("right_shift", "rshift", scalar="Tensor_Scalar"), direction="RIGHT")
def shift(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar, direction: str) -> Tensor:
    x, amount = b.promote(self, other)
    if not x.is_integral:
        raise b.refuse(f"{x.dtype} has no bits to shift")
    # Signed BitShift defines amounts beyond the width as PyTorch does; unsigned leaves them
    # open, and narrow types are rare in runtimes.
    wide = x.dtype if x.dtype == torch.int64 else torch.int32
    if x.dtype in (torch.uint32, torch.uint64):
        raise b.refuse(f"shifting {x.dtype} by amounts that may exceed its width")
    shifted = b.BitShift(b.cast(x, wide), b.cast(amount, wide), direction=direction)
    return b.cast(shifted, x.dtype)
