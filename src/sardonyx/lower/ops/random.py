"""Random numbers and dropout. They are drawn anew at every run of the exported model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import random_numbers
from sardonyx.lower.kernels.reductions import accumulation_dtype
from sardonyx.lower.onnx_types.schemas import onnx_dtype
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Dim, Dims, Tensor

# -- uniform -----------------------------------------------------------------------------------


Draw = Callable[[Builder, Sequence[Dim], torch.dtype], Tensor]


@lowering("aten::rand", "aten::rand.generator", draw=random_numbers.uniform)
@lowering("aten::randn", "aten::randn.generator", draw=random_numbers.normal)
def drawn(b: Builder, size: Dims, dtype: torch.dtype | None = None, *, draw: Draw) -> Tensor:
    return draw(b, size, dtype or torch.get_default_dtype())


@lowering("aten::rand_like", "aten::rand_like.generator", draw=random_numbers.uniform)
@lowering("aten::randn_like", "aten::randn_like.generator", draw=random_numbers.normal)
def drawn_like(b: Builder, self: Tensor, dtype: torch.dtype | None = None, *, draw: Draw) -> Tensor:
    return draw(b, b.dims(self), dtype or self.dtype)


@lowering("aten::uniform")
def uniform(b: Builder, self: Tensor, from_: float = 0.0, to: float = 1.0) -> Tensor:
    drawn = random_numbers.uniform(b, b.dims(self), self.dtype)
    if (from_, to) == (0, 1):
        return drawn
    return b.Add(b.Mul(drawn, to - from_), from_)


def _integers(b: Builder, low: Dim, high: Dim | Tensor, dims: Dims, dtype: torch.dtype) -> Tensor:
    """From [low, high); float64 tells the integers of every range apart."""
    first = b.scalar(low, torch.float64)
    span = b.Sub(b.scalar(high, torch.float64), first)
    drawn = b.Floor(b.Mul(random_numbers.uniform(b, dims, torch.float64), span))
    return b.cast(b.Add(drawn, first), dtype)


@lowering(
    "aten::randint", "aten::randint.low", "aten::randint.generator", "aten::randint.low_generator"
)
def randint(
    b: Builder, high: Dim, size: Dims, low: Dim = 0, dtype: torch.dtype | None = torch.int64
) -> Tensor:
    return _integers(b, low, high, size, dtype or torch.int64)


@lowering("aten::randint_like", "aten::randint_like.low_dtype", "aten::randint_like.Tensor")
def randint_like(
    b: Builder, self: Tensor, high: Dim | Tensor, low: Dim = 0, dtype: torch.dtype | None = None
) -> Tensor:
    return _integers(b, low, high, b.dims(self), dtype or self.dtype)


@lowering("aten::random.from", "aten::random.to")
def random(b: Builder, self: Tensor, to: int | None, from_: int = 0) -> Tensor:
    if to is None:
        raise b.refuse("an upper end is needed")
    return _integers(b, from_, to, b.dims(self), self.dtype)


@lowering("aten::randperm", "aten::randperm.generator")
def randperm(b: Builder, n: Dim, dtype: torch.dtype | None = torch.int64) -> Tensor:
    keys = random_numbers.uniform(b, [n], torch.float64)
    _, order = b.TopK(keys, b.size(n), axis=0, outputs=2)
    return b.cast(order, dtype or torch.int64)


# -- normal and others -------------------------------------------------------------------------


@lowering("aten::normal_functional")
def normal_functional(b: Builder, self: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    return b.Add(b.Mul(random_numbers.normal(b, b.dims(self), self.dtype), std), mean)


@lowering("aten::normal.float_float")
def normal_of_size(
    b: Builder, mean: float, std: float, size: Dims, dtype: torch.dtype | None = None
) -> Tensor:
    drawn = random_numbers.normal(b, size, dtype or torch.get_default_dtype())
    return b.Add(b.Mul(drawn, std), mean)


@lowering("aten::normal.Tensor_float", "aten::normal.float_Tensor", "aten::normal.Tensor_Tensor")
def normal(b: Builder, mean: Tensor | float, std: Tensor | float = 1.0) -> Tensor:
    given = [t for t in (mean, std) if isinstance(t, Tensor)]
    dims = b.broadcast_shape(*given)
    if dims is None or any(d is None for d in dims):
        raise b.refuse("the shape of mean and std together is not known")
    drawn = random_numbers.normal(b, [d for d in dims if d is not None], given[0].dtype)
    return b.Add(b.Mul(drawn, std), mean)


@lowering("aten::exponential")
def exponential(b: Builder, self: Tensor, lambd: float = 1.0) -> Tensor:
    drawn = random_numbers.uniform(b, b.dims(self), self.dtype)
    return b.Div(b.Log(b.Sub(1, drawn)), -lambd)


@lowering("aten::geometric")
def geometric(b: Builder, self: Tensor, p: float) -> Tensor:
    """How many tosses it takes until one succeeds."""
    if p == 1:
        return b.full_like(self, 1)
    drawn_as = torch.float64 if self.is_integral else accumulation_dtype(self.dtype)
    failures = b.Floor(
        b.Div(b.Log(b.Sub(1, random_numbers.uniform(b, b.dims(self), drawn_as))), math.log1p(-p))
    )
    return b.cast(b.Add(failures, 1), self.dtype)


@lowering("aten::_standard_gamma")
def standard_gamma(b: Builder, self: Tensor) -> Tensor:
    drawn = b.cast(
        random_numbers.gamma(b, b.cast(self, accumulation_dtype(self.dtype))), self.dtype
    )
    return b.Max(drawn, torch.finfo(self.dtype).tiny)


@lowering("aten::_sample_dirichlet")
def sample_dirichlet(b: Builder, self: Tensor) -> Tensor:
    # In float64, as PyTorch: small concentrations give numbers that float32 does not have.
    drawn = random_numbers.gamma(b, b.cast(self, torch.float64))
    shares = b.cast(b.Div(drawn, b.ReduceSum(drawn, [-1], keepdims=1)), self.dtype)
    limits = torch.finfo(self.dtype)
    return b.Min(b.Max(shares, limits.tiny), 1 - limits.eps / 2)


# -- choices -----------------------------------------------------------------------------------


@lowering("aten::bernoulli.p")
def bernoulli_p(b: Builder, self: Tensor, p: float) -> Tensor:
    return b.cast(random_numbers.coin_tosses(b, b.dims(self), p), self.dtype)


@lowering("aten::bernoulli.Tensor")
def bernoulli_tensor(b: Builder, self: Tensor, p: Tensor) -> Tensor:
    drawn = random_numbers.uniform(b, b.dims(self), p.dtype)
    return b.cast(b.Less(drawn, p), self.dtype)


@lowering("aten::multinomial")
def multinomial(b: Builder, self: Tensor, num_samples: Dim, replacement: bool = False) -> Tensor:
    if not replacement:
        # As PyTorch does: the largest of p / Exp(1) are a draw without replacement.
        waits = b.Neg(b.Log(b.Sub(1, random_numbers.uniform(b, b.dims(self), self.dtype))))
        _, chosen = b.TopK(b.Div(self, waits), b.size(num_samples), axis=-1, outputs=2)
        return chosen
    if not isinstance(num_samples, int):
        raise b.refuse("num_samples must be known at export time to draw with replacement")
    rows = b.unsqueeze(self, [0]) if self.rank == 1 else self
    logarithms = b.Log(b.cast(rows, torch.float32))
    drawn = b.Multinomial(logarithms, sample_size=num_samples, dtype=int(onnx_dtype(torch.int64)))
    return b.squeeze(drawn, [0]) if self.rank == 1 else drawn


# -- dropout -----------------------------------------------------------------------------------


@lowering("aten::dropout")
def dropout(b: Builder, input: Tensor, p: float, train: bool) -> Tensor:
    return native_dropout(b, input, p, train)[0] if train else input


@lowering("aten::native_dropout")
def native_dropout(
    b: Builder, input: Tensor, p: float, train: bool | None = None
) -> tuple[Tensor, Tensor]:
    if train is False:
        return input, b.full_like(input, True, torch.bool)
    if p == 1:  # ONNX would scale what is left by 1 / 0
        return b.full_like(input, 0), b.full_like(input, False, torch.bool)
    if b.numel(input) == 1:
        # ONNX Runtime's Dropout begins every run by dropping the first element.
        tossed = random_numbers.coin_tosses(b, b.dims(input), 1 - p)
        return b.Mul(b.cast(tossed, input.dtype), b.Mul(input, 1 / (1 - p))), tossed
    kept, mask = b.Dropout(input, b.scalar(p, torch.float32), True, outputs=2)
    # ONNX Runtime removes a Dropout whose mask nobody reads, even one that is in training.
    return b.Where(mask, kept, 0), mask


@lowering("aten::alpha_dropout")
def alpha_dropout(b: Builder, input: Tensor, p: float, train: bool) -> Tensor:
    """What is dropped becomes SELU's limit, then mean and variance are restored."""
    if not train or p == 0:
        return input
    if p == 1:
        return b.full_like(input, 0)
    limit = -1.7580993408473766
    scale = ((limit**2 * p + 1) * (1 - p)) ** -0.5
    kept = random_numbers.coin_tosses(b, b.dims(input), 1 - p)
    return b.Add(b.Mul(b.Where(kept, input, limit), scale), -limit * scale * p)
