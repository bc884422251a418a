"""Covariance and correlation of variables, a row each."""

from __future__ import annotations

from sardonyx.lower import promote
from sardonyx.lower.builder import Builder
from sardonyx.lower.contraction import diagonal
from sardonyx.lower.reductions import accumulate
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor


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
    x, *weights = b.promote(self, *given, dtype=dtype)
    if x.rank < 2:
        x = b.reshape(x, [1, b.numel(x)])
    weight = b.Mul(*weights) if len(weights) == 2 else weights[0] if weights else None
    weighed = x if weight is None else b.Mul(x, weight)
    if weight is None:
        total = b.scalar(x.dim(1), dtype)
    else:
        total = accumulate(b, "ReduceSum", weight, None)
    freedom = b.Sub(total, b.scalar(correction, dtype))
    if aweights is not None and weight is not None and correction:
        squares = accumulate(b, "ReduceSum", b.Mul(weight, b.cast(aweights, dtype)), None)
        freedom = b.Sub(total, b.Div(b.Mul(squares, b.scalar(correction, dtype)), total))
    mean = b.Div(accumulate(b, "ReduceSum", weighed, 1, keepdim=True), total)
    centred = b.Sub(x, mean)
    right = centred if weight is None else b.Mul(centred, weight)
    products = b.MatMul(centred, b.transpose(right, [1, 0]))
    result = b.Div(products, b.Max(freedom, b.scalar(0, dtype)))
    return b.squeeze(result, [0, 1]) if x.static_dim(0) == 1 else result


@lowering("aten::corrcoef")
def corrcoef(b: Builder, self: Tensor) -> Tensor:
    covariance = cov(b, self)
    if covariance.rank == 0:
        result: Tensor = b.Div(covariance, covariance)
        return result
    deviation = b.Sqrt(diagonal(b, covariance, 0, 1))
    scaled = b.Div(covariance, b.unsqueeze(deviation, [1]))
    scaled = b.Div(scaled, b.unsqueeze(deviation, [0]))
    one = b.scalar(1, scaled.dtype)
    # Clip would turn the NaN of a variable that does not vary into a bound.
    scaled = b.Where(b.Greater(scaled, one), one, scaled)
    result = b.Where(b.Less(scaled, b.Neg(one)), b.Neg(one), scaled)
    return result
