"""Householder reflections H = I - tau v adjoint(v), in LAPACK's form and signs."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.complex.values import ComplexTensor, conjugate, real_part, whole_like
from sardonyx.lower.kernels.axes import arange
from sardonyx.lower.kernels.loops import repeat
from sardonyx.lower.kernels.matrices import adjoint, at, row_numbers, shorter
from sardonyx.lower.values import Tensor


def reflections(b: Builder, a: Tensor) -> tuple[Tensor, Tensor]:
    """LAPACK's geqrf: R, below its diagonal the vectors v of the reflections, and their tau."""
    *batch, m, n = b.dims(a)
    k = shorter(m, n)
    row, column, step_number = row_numbers(b, m), arange(b, n), arange(b, k)

    def step(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        packed, tau = carried
        x = at(b, packed, -1, i)
        alpha = at(b, x, -2, i)
        below = b.Greater(row, i)
        tail = b.Where(below, x, 0.0)
        others = tail  # all that is to vanish
        if isinstance(tail, ComplexTensor) and isinstance(alpha, ComplexTensor):
            others = b.Concat(tail.real, tail.imag, alpha.imag, axis=-2)
        rest = b.ReduceL2(others, [len(batch)], keepdims=1)
        leading = real_part(alpha)
        size = b.ReduceL2(b.Concat(leading, rest, axis=-2), [len(batch)], keepdims=1)
        is_done = b.Equal(rest, 0)
        beta = b.Where(b.Less(leading, 0), size, b.Neg(size))
        factor = b.Where(is_done, 0.0, b.Div(b.Sub(beta, alpha), beta))
        v = b.Where(b.Or(b.Less(row, i), is_done), 0.0, b.Div(tail, b.Sub(alpha, beta)))
        whole = b.Where(b.Equal(row, i), 1.0, v)
        products = b.MatMul(adjoint(b, whole), packed)
        # The adjoint of the reflection takes `a` to R.
        reflected = b.Sub(packed, b.Mul(b.Mul(whole, conjugate(b, factor)), products))
        left = b.Where(b.Equal(row, i), b.Where(is_done, alpha, beta), b.Where(below, v, x))
        packed = b.Where(b.Greater(column, i), reflected, b.Where(b.Equal(column, i), left, packed))
        tau = b.Where(b.Equal(step_number, i), b.squeeze(factor, [-1]), tau)
        return [packed, tau]

    nothing = whole_like(b, b.full([*batch, k], 0, a.dtype), a)
    packed, tau = repeat(b, k, [a, nothing], step)
    return packed, tau


def reflect(
    b: Builder, packed: Tensor, tau: Tensor, x: Tensor, *, of_adjoint: bool = False
) -> Tensor:
    """H_1 H_2 ... H_k x, or the adjoint of that product times x."""
    row = row_numbers(b, packed.dim(-2))
    k = tau.dim(-1)
    last = b.size(k - 1)
    factors = b.unsqueeze(conjugate(b, tau) if of_adjoint else tau, [-2])

    def step(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        (x,) = carried
        place = i if of_adjoint else b.Sub(last, i)
        tail = b.Where(b.Greater(row, place), at(b, packed, -1, place), 0.0)
        v = b.Where(b.Equal(row, place), 1.0, tail)
        products = b.MatMul(adjoint(b, v), x)
        return [b.Sub(x, b.Mul(b.Mul(v, at(b, factors, -1, place)), products))]

    return repeat(b, k, [whole_like(b, x, packed)], step)[0]
