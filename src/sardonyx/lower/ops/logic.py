"""Logical operators, which see every number as a truth value, and bitwise ones."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor


def _register_logical(name: str, op: str) -> None:
    @lowering(name)
    def logical(b: Builder, self: Tensor, other: Tensor) -> Tensor:
        return b.op(op, b.cast(self, torch.bool), b.cast(other, torch.bool))


for _name, _op in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    _register_logical(f"aten::logical_{_name}", _op)


@lowering("aten::logical_not")
def logical_not(b: Builder, self: Tensor) -> Tensor:
    return elementwise.is_zero(b, self)


def _register_bitwise(name: str, op: str) -> None:
    @lowering(
        f"aten::bitwise_{name}.Tensor",
        f"aten::bitwise_{name}.Scalar",
        f"aten::bitwise_{name}.Scalar_Tensor",
        f"aten::__{name}__.Tensor",
        f"aten::__{name}__.Scalar",
    )
    def bitwise(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
        x, y = b.promote(self, other)
        return b.op(op if x.dtype == torch.bool else f"Bitwise{op}", x, y)


for _name, _op in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    _register_bitwise(_name, _op)


@lowering("aten::bitwise_not")
def bitwise_not(b: Builder, self: Tensor) -> Tensor:
    return b.Not(self) if self.dtype == torch.bool else b.BitwiseNot(self)


def _register_shift(side: str, direction: str) -> None:
    @lowering(
        f"aten::bitwise_{side}_shift.Tensor",
        f"aten::bitwise_{side}_shift.Tensor_Scalar",
        f"aten::bitwise_{side}_shift.Scalar_Tensor",
        f"aten::__{side[0]}shift__.Tensor",
        f"aten::__{side[0]}shift__.Scalar",
    )
    def shift(b: Builder, self: Tensor | Scalar, other: Tensor | Scalar) -> Tensor:
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


_register_shift("left", "LEFT")
_register_shift("right", "RIGHT")
