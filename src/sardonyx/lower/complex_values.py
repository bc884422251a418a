"""Complex tensors of the model. In the graph each is two real tensors; where the file has to show
one (inputs, outputs, weights) it is a real tensor with a last dim of 2, as `torch.view_as_real`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch

from sardonyx.lower.values import Dim, Scalar, Tensor

if TYPE_CHECKING:
    from sardonyx.lower.builder import Builder


@dataclass(frozen=True, slots=True)
class ComplexTensor:
    """Two real tensors of one shape and dtype.

    `pairs` is the same numbers with a last dim of 2, where they are at hand in that form.
    """

    real: Tensor
    imag: Tensor
    pairs: Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        return self.real.dtype.to_complex()

    @property
    def shape(self) -> tuple[Dim | None, ...] | None:
        return self.real.shape

    @property
    def rank(self) -> int:
        return self.real.rank

    def __repr__(self) -> str:
        return f"({self.real!r}, {self.imag!r})"


Operand: TypeAlias = ComplexTensor | Tensor | Scalar
"""What stands beside a complex tensor: another one, a real one, or a number of either kind."""


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


def split_constant(b: Builder, constant: torch.Tensor) -> ComplexTensor:
    resolved = constant.detach().resolve_conj()
    return ComplexTensor(b.const(resolved.real), b.const(resolved.imag))


def of_real(b: Builder, x: Tensor) -> ComplexTensor:
    """A real tensor among complex ones."""
    return ComplexTensor(x, b.zeros_like(x))
