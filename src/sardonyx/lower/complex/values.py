"""Complex tensors of the model. In the graph each is two real tensors; where the file has to show
one (inputs, outputs, weights) it is a real tensor with a last dim of 2, as `torch.view_as_real`.

The builder writes an ONNX operator on complex tensors as operators on their parts
(`operators.py`), so that most lowerings serve both kinds of numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from sardonyx.lower.values import Tensor

if TYPE_CHECKING:
    from sardonyx.lower.builder import Builder

COMPLEX_OPERATORS: dict[str, Callable[..., Tensor | tuple[Tensor, ...]]] = {}
"""What ONNX's operators are on complex tensors, by name."""


class ComplexTensor(Tensor):
    """Two real tensors of one shape and dtype; it has no `value` of its own.

    `pairs` is the same numbers with a last dim of 2, where they are at hand in that form. A real
    tensor among complex ones stays a `Tensor` of their parts' dtype: that saves products with zero.
    """

    __slots__ = ("imag", "pairs", "real")

    def __init__(self, real: Tensor, imag: Tensor, pairs: Tensor | None = None) -> None:
        self.real = real
        self.imag = imag
        self.pairs = pairs
        self.dtype = real.dtype.to_complex()
        self.shape = real.shape
        self.const = None
        self.fake = real.fake
        self.is_sequence = False

    def __repr__(self) -> str:
        return f"({self.real!r}, {self.imag!r})"


def from_pairs(b: Builder, pairs: Tensor) -> ComplexTensor:
    """The complex tensor whose parts lie side by side in the last dim."""
    last = pairs.rank - 1
    real, imag = (b.Gather(pairs, index, axis=last) for index in (0, 1))
    return ComplexTensor(real, imag, pairs)


def to_pairs(b: Builder, z: ComplexTensor) -> Tensor:
    if z.pairs is not None:
        return z.pairs
    last = z.rank
    return b.Concat(*(b.unsqueeze(part, [last]) for part in (z.real, z.imag)), axis=last)


def whole(b: Builder, x: Tensor) -> ComplexTensor:
    """With both its parts."""
    return x if isinstance(x, ComplexTensor) else ComplexTensor(x, b.full_like(x, 0))


def whole_like(b: Builder, x: Tensor, other: Tensor) -> Tensor:
    """With both its parts if `other` has them: what a loop carries keeps its kind."""
    return whole(b, x) if isinstance(other, ComplexTensor) else x


def real_part(x: Tensor) -> Tensor:
    return x.real if isinstance(x, ComplexTensor) else x


def conjugate(b: Builder, x: Tensor) -> Tensor:
    return ComplexTensor(x.real, b.Neg(x.imag)) if isinstance(x, ComplexTensor) else x


def converted(b: Builder, x: Tensor, dtype: torch.dtype | None) -> Tensor:
    """As ATen converts: a complex number loses its imaginary part, if all but its truth is asked
    for. (`Builder.cast` refuses to.)"""
    is_lost = dtype is not None and not dtype.is_complex and dtype != torch.bool
    return b.cast(real_part(x) if is_lost else x, dtype)
