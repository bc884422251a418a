"""Tensors whose number of dims is known at run time."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


@lowering("sardonyx::any_rank_whole")
def any_rank_whole(b: Builder, flat: Tensor, sizes: Tensor) -> Tensor:
    # A size of 0 is meant, and no order to copy one of the input's.
    return _of_unknown_rank(b, b.Reshape(flat, sizes, allowzero=1))


@lowering("sardonyx::any_rank_expand")
def any_rank_expand(
    b: Builder, flat: Tensor, sizes: Tensor, other: Tensor
) -> tuple[Tensor, Tensor]:
    # Expand broadcasts both ways: its result may have a higher rank than `other`.
    whole = _of_unknown_rank(b, b.Expand(any_rank_whole(b, flat, sizes), other))
    return b.reshape(whole, [-1]), b.Shape(whole)


def _of_unknown_rank(b: Builder, made: Tensor) -> Tensor:
    return b.declare(Tensor(made.value, made.dtype, None))
