"""Random numbers drawn when the model runs, in the dtypes runtimes draw them in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import loops
from sardonyx.lower.onnx_types.schemas import onnx_dtype
from sardonyx.lower.values import Dim, Tensor

_SIGNIFICANT_BITS = {torch.float16: 11, torch.bfloat16: 8}
_MOST_TRIES = 500
"""No number that can be accepted is rejected so often."""


def uniform(b: Builder, dims: Sequence[Dim], dtype: torch.dtype) -> Tensor:
    """From [0, 1), like torch.rand."""
    drawn = _draw(b, "RandomUniform", dims, dtype)
    bits = _SIGNIFICANT_BITS.get(dtype)
    if bits is not None:  # rounding to half precision must not reach 1
        drawn = b.Mul(b.Floor(b.Mul(drawn, 2.0**bits)), 2.0**-bits)
    return b.cast(drawn, dtype)


def normal(b: Builder, dims: Sequence[Dim], dtype: torch.dtype) -> Tensor:
    """From the standard normal distribution, like torch.randn."""
    return b.cast(_draw(b, "RandomNormal", dims, dtype), dtype)


def coin_tosses(b: Builder, dims: Sequence[Dim], probability: float) -> Tensor:
    """True with a probability, as a bool tensor."""
    return b.Less(uniform(b, dims, torch.float32), probability)


def gamma(b: Builder, concentration: Tensor) -> Tensor:
    """From the gamma distribution of rate 1, by the rejections of Marsaglia and Tsang: each number
    is drawn until it is accepted, which takes 1.05 tries at most in the mean."""
    alpha, dims = concentration, b.dims(concentration)

    def draw(of: Callable[..., Tensor]) -> Tensor:
        return of(b, dims, alpha.dtype)

    below = b.Less(alpha, 1)  # gamma(a) is gamma(a + 1) * u ** (1 / a)
    d = b.Sub(b.Where(below, b.Add(alpha, 1), alpha), 1 / 3)
    c = b.Div(1, b.Sqrt(b.Mul(d, 9)))

    def drawn_again(_: Tensor, carried: list[Tensor]) -> list[Tensor]:
        accepted, is_open = carried
        x = draw(normal)
        root = b.Add(b.Mul(x, c), 1)
        v = b.Mul(b.Mul(root, root), root)
        bound = b.Add(b.Mul(b.Mul(x, x), 0.5), b.Mul(d, b.Add(b.Sub(1, v), b.Log(b.Max(v, 1e-30)))))
        is_in = b.And(b.Greater(root, 0), b.Less(b.Log(b.Sub(1, draw(uniform))), bound))
        return [
            b.Where(b.And(is_open, is_in), v, accepted),
            b.And(is_open, b.Not(is_in)),
        ]

    start = [b.full_like(alpha, 1), b.Less(b.Abs(alpha), math.inf)]
    v, _ = loops.repeat_while(b, lambda carried: carried[1], drawn_again, start, _MOST_TRIES)
    boost = b.Pow(b.Sub(1, draw(uniform)), b.Div(1, alpha))
    return b.Mul(b.Mul(d, v), b.Where(below, boost, 1))


def _draw(b: Builder, op: str, dims: Sequence[Dim], dtype: torch.dtype) -> Tensor:
    drawn_as = torch.float64 if dtype == torch.float64 else torch.float32
    attribute = int(onnx_dtype(drawn_as))
    if dims and all(isinstance(d, int) for d in dims):  # an empty shape is no shape to runtimes
        drawn = b.op(op, shape=[int(d) for d in dims], dtype=attribute)
    else:
        drawn = b.op(f"{op}Like", b.full(dims, 0, drawn_as), dtype=attribute)
    return b.with_shape(drawn, dims)
