"""Covariance and correlation of variables, a row each."""

from __future__ import annotations

from typing import NamedTuple

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor, conjugate, real_part
from sardonyx.lower.kernels.contraction import diagonal
from sardonyx.lower.kernels.reductions import accumulate
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Tensor


class _Weighing(NamedTuple):
    """What each observation counts, what they count together, and what is left of that to divide
    by."""

    weight: Tensor | None
    total: Tensor
    freedom: Tensor


def _weighing(
    b: Builder,
    observations: Dim,
    dtype: torch.dtype,
    correction: int,
    fweights: Tensor | None,
    aweights: Tensor | None,
) -> _Weighing:
    given = [b.cast(w, dtype) for w in (fweights, aweights) if w is not None]
    if not given:
        weight, total = None, b.scalar(observations, dtype)
    else:
        weight = b.Mul(*given) if len(given) == 2 else given[0]
        total = accumulate(b, "ReduceSum", weight, None)
    freedom = b.Sub(total, b.scalar(correction, dtype))
    if aweights is not None and weight is not None and correction:
        squares = accumulate(b, "ReduceSum", b.Mul(weight, given[-1]), None)
        freedom = b.Sub(total, b.Div(b.Mul(squares, b.scalar(correction, dtype)), total))
    return _Weighing(weight, total, b.Max(freedom, b.scalar(0, dtype)))


@lowering("aten::cov")
def cov(
    b: Builder,
    self: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    given = [w for w in (fweights, aweights) if w is not None]
    dtype = type_promotion.float_dtype(*given, self)
    x = b.cast(self, dtype)
    if x.rank < 2:
        x = b.reshape(x, [1, b.numel(x)])
    weighing = _weighing(b, x.dim(1), dtype, correction, fweights, aweights)
    weight, total = weighing.weight, weighing.total
    weighed = x if weight is None else b.Mul(x, weight)
    mean = b.Div(accumulate(b, "ReduceSum", weighed, 1, keepdim=True), total)
    centred = b.Sub(x, mean)
    right = centred if weight is None else b.Mul(centred, weight)
    products = b.MatMul(centred, conjugate(b, b.transpose(right, [1, 0])))
    result = b.Div(products, weighing.freedom)
    return b.squeeze(result, [0, 1]) if x.static_dim(0) == 1 else result


@lowering("aten::corrcoef")
def corrcoef(b: Builder, self: Tensor) -> Tensor:
    covariance = cov(b, self)
    if covariance.rank == 0:
        return b.Div(covariance, covariance)
    deviation = b.Sqrt(diagonal(b, real_part(covariance), 0, 1))
    scaled = b.Div(covariance, b.unsqueeze(deviation, [1]))
    scaled = b.Div(scaled, b.unsqueeze(deviation, [0]))
    return _within_one(b, scaled)


def _within_one(b: Builder, x: Tensor) -> Tensor:
    if isinstance(x, ComplexTensor):
        return ComplexTensor(_within_one(b, x.real), _within_one(b, x.imag))
    one = b.scalar(1, x.dtype)
    # Clip would turn the NaN of a variable that does not vary into a bound.
    least = b.Where(b.Greater(x, one), one, x)
    return b.Where(b.Less(least, b.Neg(one)), b.Neg(one), least)
