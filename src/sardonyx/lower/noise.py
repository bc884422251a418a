"""Random numbers drawn when the model runs, in the dtypes runtimes draw them in."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.schemas import onnx_dtype
from sardonyx.lower.values import Dim, Tensor

_SIGNIFICANT_BITS = {torch.float16: 11, torch.bfloat16: 8}


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
    tossed: Tensor = b.Less(uniform(b, dims, torch.float32), probability)
    return tossed


def _draw(b: Builder, op: str, dims: Sequence[Dim], dtype: torch.dtype) -> Tensor:
    drawn_as = torch.float64 if dtype == torch.float64 else torch.float32
    attribute = int(onnx_dtype(drawn_as))
    if dims and all(isinstance(d, int) for d in dims):  # an empty shape is no shape to runtimes
        drawn: Tensor = b.op(op, shape=[int(d) for d in dims], dtype=attribute)
    else:
        drawn = b.op(f"{op}Like", b.full(dims, 0, drawn_as), dtype=attribute)
    return b.with_shape(drawn, dims)
