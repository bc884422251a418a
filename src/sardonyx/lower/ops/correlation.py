"""Covariance and correlation of variables, a row each."""

from __future__ import annotations

from typing import NamedTuple

import torch

from sardonyx.lower import complex_arithmetic as arithmetic
from sardonyx.lower import promote
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_factors import adjoint_of, product
from sardonyx.lower.complex_values import ComplexTensor
from sardonyx.lower.contraction import diagonal
from sardonyx.lower.reductions import accumulate
from sardonyx.lower.registry import complex_lowering, lowering
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
    dtype = promote.float_dtype(*given, self)
    x = b.cast(self, dtype)
    if x.rank < 2:
        x = b.reshape(x, [1, b.numel(x)])
    weighing = _weighing(b, x.dim(1), dtype, correction, fweights, aweights)
    weight, total = weighing.weight, weighing.total
    weighed = x if weight is None else b.Mul(x, weight)
    mean = b.Div(accumulate(b, "ReduceSum", weighed, 1, keepdim=True), total)
    centred = b.Sub(x, mean)
    right = centred if weight is None else b.Mul(centred, weight)
    products = b.MatMul(centred, b.transpose(right, [1, 0]))
    result = b.Div(products, weighing.freedom)
    return b.squeeze(result, [0, 1]) if x.static_dim(0) == 1 else result


@lowering("aten::corrcoef")
def corrcoef(b: Builder, self: Tensor) -> Tensor:
    covariance = cov(b, self)
    if covariance.rank == 0:
        return b.Div(covariance, covariance)
    deviation = b.Sqrt(diagonal(b, covariance, 0, 1))
    scaled = b.Div(covariance, b.unsqueeze(deviation, [1]))
    scaled = b.Div(scaled, b.unsqueeze(deviation, [0]))
    return _within_one(b, scaled)


def _within_one(b: Builder, x: Tensor) -> Tensor:
    one = b.scalar(1, x.dtype)
    # Clip would turn the NaN of a variable that does not vary into a bound.
    least = b.Where(b.Greater(x, one), one, x)
    return b.Where(b.Less(least, b.Neg(one)), b.Neg(one), least)


# -- of complex numbers ----------------------------------------------------------------------------


@complex_lowering("aten::cov")
def complex_cov(
    b: Builder,
    self: ComplexTensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> ComplexTensor:
    dtype = self.real.dtype
    parts = [self.real, self.imag]
    if self.rank < 2:
        parts = [b.reshape(part, [1, b.numel(part)]) for part in parts]
    x = ComplexTensor(*parts)
    weighing = _weighing(b, x.real.dim(1), dtype, correction, fweights, aweights)

    def weighed(z: ComplexTensor) -> ComplexTensor:
        return z if weighing.weight is None else arithmetic.multiply(b, z, weighing.weight)

    sums = (accumulate(b, "ReduceSum", p, 1, keepdim=True) for p in _parts(weighed(x)))
    mean = arithmetic.divide(b, ComplexTensor(*sums), weighing.total)
    centred = arithmetic.subtract(b, x, mean)
    products = product(b, centred, adjoint_of(b, weighed(centred)))
    result = arithmetic.divide(b, products, weighing.freedom)
    if x.real.static_dim(0) == 1:
        return ComplexTensor(*(b.squeeze(part, [0, 1]) for part in _parts(result)))
    return result


@complex_lowering("aten::corrcoef")
def complex_corrcoef(b: Builder, self: ComplexTensor) -> ComplexTensor:
    covariance = complex_cov(b, self)
    if covariance.rank == 0:
        return arithmetic.divide(b, covariance, covariance)
    deviation = b.Sqrt(diagonal(b, covariance.real, 0, 1))
    scaled = arithmetic.divide(b, covariance, b.unsqueeze(deviation, [1]))
    scaled = arithmetic.divide(b, scaled, b.unsqueeze(deviation, [0]))
    return ComplexTensor(*(_within_one(b, part) for part in _parts(scaled)))


def _parts(z: ComplexTensor) -> tuple[Tensor, Tensor]:
    return z.real, z.imag
