"""LU and QR of complex matrices, a column at a time, in LAPACK's form and signs."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.lower import complex_arithmetic as arithmetic
from sardonyx.lower.builder import Builder
from sardonyx.lower.complex_arithmetic import bilinear, choose, multiply, subtract
from sardonyx.lower.complex_values import ComplexTensor, of_real
from sardonyx.lower.elimination import swapped
from sardonyx.lower.loops import repeat
from sardonyx.lower.matrices import at, expand_rows, row_numbers, shorter, transposed
from sardonyx.lower.positions import arange
from sardonyx.lower.values import Tensor


def adjoint_of(b: Builder, z: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(transposed(b, z.real), b.Neg(transposed(b, z.imag)))


def part_at(b: Builder, z: ComplexTensor, axis: int, index: Tensor) -> ComplexTensor:
    return ComplexTensor(at(b, z.real, axis, index), at(b, z.imag, axis, index))


def product(b: Builder, x: ComplexTensor, y: ComplexTensor) -> ComplexTensor:
    """Of matrices."""
    return bilinear(b, b.MatMul, x, y)


@dataclass(frozen=True, slots=True)
class ComplexLU:
    """P A = L U; as `elimination.LU`."""

    packed: ComplexTensor
    pivots: Tensor
    order: Tensor


def lu_factors(b: Builder, a: ComplexTensor) -> ComplexLU:
    """With partial pivoting: each step takes the row with the largest |x| + |y| of its column."""
    *batch, m, n = b.dims(a.real)
    k = shorter(m, n)
    row, column, step_number = row_numbers(b, m), arange(b, n), arange(b, k)
    zero = of_real(b, b.scalar(0, a.real.dtype))

    def step(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        real, imag, pivots, order = carried
        packed = ComplexTensor(real, imag)
        candidates = part_at(b, packed, -1, i)
        sizes = b.Add(b.Abs(candidates.real), b.Abs(candidates.imag))
        pivot = b.ArgMax(b.Where(b.Less(row, i), -1.0, sizes), axis=len(batch))
        source = swapped(b, row, i, pivot)
        rows = expand_rows(b, source, n)
        packed = ComplexTensor(*(b.GatherElements(p, rows, axis=-2) for p in (real, imag)))
        order = b.GatherElements(order, b.squeeze(source, [-1]), axis=-1)
        pivots = b.Where(b.Equal(step_number, i), b.squeeze(pivot, [-1]), pivots)
        leading = part_at(b, packed, -2, i)
        divisor = part_at(b, leading, -1, i)
        # A column of zeros is left as it is, as LAPACK does.
        usable = b.And(b.Greater(row, i), arithmetic.is_nonzero(b, divisor))
        quotient = arithmetic.divide(b, part_at(b, packed, -1, i), divisor)
        factors = choose(b, usable, quotient, zero)
        right = choose(b, b.Greater(column, i), leading, zero)
        packed = subtract(b, packed, multiply(b, factors, right))
        packed = choose(b, b.And(usable, b.Equal(column, i)), factors, packed)
        return [packed.real, packed.imag, pivots, order]

    start = [
        a.real,
        a.imag,
        b.expand(step_number, [*batch, k]),
        b.expand(arange(b, m), [*batch, m]),
    ]
    real, imag, pivots, order = repeat(b, k, start, step)
    return ComplexLU(ComplexTensor(real, imag), pivots, order)


def reflections(b: Builder, a: ComplexTensor) -> tuple[ComplexTensor, ComplexTensor]:
    """LAPACK's geqrf: R, below its diagonal the vectors v of the reflections I - tau v adjoint(v),
    and their tau."""
    *batch, m, n = b.dims(a.real)
    k = shorter(m, n)
    row, column, step_number = row_numbers(b, m), arange(b, n), arange(b, k)
    zero = of_real(b, b.scalar(0, a.real.dtype))
    one = of_real(b, b.scalar(1, a.real.dtype))

    def step(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        packed, tau = ComplexTensor(*carried[:2]), ComplexTensor(*carried[2:])
        x = part_at(b, packed, -1, i)
        alpha = part_at(b, x, -2, i)
        below = b.Greater(row, i)
        tail = choose(b, below, x, zero)
        parts = b.Concat(tail.real, tail.imag, alpha.imag, axis=-2)
        rest = b.ReduceL2(parts, [len(batch)], keepdims=1)
        size = b.ReduceL2(b.Concat(alpha.real, rest, axis=-2), [len(batch)], keepdims=1)
        is_done = b.Equal(rest, 0)
        beta = b.Where(b.Less(alpha.real, 0), size, b.Neg(size))
        turned = ComplexTensor(b.Sub(beta, alpha.real), b.Neg(alpha.imag))
        factor = choose(b, is_done, zero, arithmetic.divide(b, turned, beta))
        quotient = arithmetic.divide(b, arithmetic.negate(b, tail), turned)
        v = choose(b, b.Or(b.Less(row, i), is_done), zero, quotient)
        whole = choose(b, b.Equal(row, i), one, v)
        products = product(b, adjoint_of(b, whole), packed)
        # The adjoint of the reflection takes `a` to R.
        weighed = multiply(b, whole, arithmetic.conjugate(b, factor))
        reflected = subtract(b, packed, multiply(b, weighed, products))
        pivot = choose(b, is_done, alpha, of_real(b, beta))
        left = choose(b, b.Equal(row, i), pivot, choose(b, below, v, x))
        kept = choose(b, b.Equal(column, i), left, packed)
        packed = choose(b, b.Greater(column, i), reflected, kept)
        place = b.Equal(step_number, i)
        flat = ComplexTensor(b.squeeze(factor.real, [-1]), b.squeeze(factor.imag, [-1]))
        tau = choose(b, place, flat, tau)
        return [packed.real, packed.imag, tau.real, tau.imag]

    nothing = b.full([*batch, k], 0, a.real.dtype)
    found = repeat(b, k, [a.real, a.imag, nothing, nothing], step)
    return ComplexTensor(*found[:2]), ComplexTensor(*found[2:])


def reflect(
    b: Builder,
    packed: ComplexTensor,
    tau: ComplexTensor,
    x: ComplexTensor,
    *,
    of_adjoint: bool = False,
) -> ComplexTensor:
    """H_1 H_2 ... H_k x, or the adjoint of that product times x."""
    row = row_numbers(b, packed.real.dim(-2))
    k = tau.real.dim(-1)
    last = b.size(k - 1)
    factors = ComplexTensor(b.unsqueeze(tau.real, [-2]), b.unsqueeze(tau.imag, [-2]))
    if of_adjoint:
        factors = arithmetic.conjugate(b, factors)
    zero = of_real(b, b.scalar(0, packed.real.dtype))
    one = of_real(b, b.scalar(1, packed.real.dtype))

    def step(i: Tensor, carried: list[Tensor]) -> list[Tensor]:
        x = ComplexTensor(*carried)
        place = i if of_adjoint else b.Sub(last, i)
        tail = choose(b, b.Greater(row, place), part_at(b, packed, -1, place), zero)
        v = choose(b, b.Equal(row, place), one, tail)
        products = product(b, adjoint_of(b, v), x)
        weighed = multiply(b, v, part_at(b, factors, -1, place))
        x = subtract(b, x, multiply(b, weighed, products))
        return [x.real, x.imag]

    return ComplexTensor(*repeat(b, k, [x.real, x.imag], step))
