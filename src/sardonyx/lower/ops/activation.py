"""Activations: the functions between the layers of a network."""

from __future__ import annotations

import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise, random_numbers
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor


@lowering("aten::selu", op="Selu")
@lowering("aten::silu", op="Swish")
@lowering("aten::mish", op="Mish")
@lowering("aten::hardswish", op="HardSwish")
def one_to_one(b: Builder, self: Tensor, op: str) -> Tensor:
    return b.op(op, self)


@lowering("aten::relu")
def relu(b: Builder, self: Tensor) -> Tensor:
    if not self.is_floating_point:
        return elementwise.maximum(b, self, b.scalar(0, self.dtype))
    return b.Relu(self)


@lowering("aten::relu6", min_val=0, max_val=6)
@lowering("aten::hardtanh")
def hardtanh(b: Builder, self: Tensor, min_val: Scalar = -1, max_val: Scalar = 1) -> Tensor:
    return b.Clip(self, b.scalar(min_val, self.dtype), b.scalar(max_val, self.dtype))


@lowering("aten::hardsigmoid")
def hardsigmoid(b: Builder, self: Tensor) -> Tensor:
    return b.HardSigmoid(self, alpha=1 / 6, beta=0.5)


@lowering("aten::leaky_relu")
def leaky_relu(b: Builder, self: Tensor, negative_slope: float = 0.01) -> Tensor:
    return b.LeakyRelu(self, alpha=negative_slope)


@lowering("aten::elu")
def elu(
    b: Builder, self: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> Tensor:
    numbers = (scale,) if input_scale == 1 else (alpha, scale, input_scale)
    x = b.cast(self, type_promotion.computing_dtype(self.dtype, *numbers))
    if input_scale == 1:
        activated = b.Elu(x, alpha=alpha)
    else:  # input_scale touches the negative branch only
        negative = b.Mul(elementwise.expm1(b, b.Mul(x, input_scale)), alpha)
        activated = b.Where(b.Greater(x, 0), x, negative)
    return b.cast(elementwise.multiply(b, activated, scale), self.dtype)


@lowering("aten::celu")
def celu(b: Builder, self: Tensor, alpha: float = 1.0) -> Tensor:
    return b.Celu(self, alpha=alpha)


@lowering("aten::gelu")
def gelu(b: Builder, self: Tensor, approximate: str = "none") -> Tensor:
    return b.Gelu(self, approximate=None if approximate == "none" else approximate)


@lowering("aten::softplus")
def softplus(b: Builder, self: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    x = b.cast(self, type_promotion.computing_dtype(self.dtype, beta, 1 / beta))
    scaled = elementwise.multiply(b, x, beta)
    smooth = elementwise.multiply(b, elementwise.softplus(b, scaled), 1 / beta)
    if threshold < 20 or self.dtype == torch.float64:
        # From 20 on, softplus(x) is x to within a float32's precision.
        smooth = b.Where(b.Greater(scaled, threshold), x, smooth)
    return b.cast(smooth, self.dtype)


@lowering("aten::log_sigmoid")
def log_sigmoid(b: Builder, self: Tensor) -> Tensor:
    return b.Neg(elementwise.softplus(b, b.Neg(self)))


@lowering("aten::log_sigmoid_forward")
def log_sigmoid_forward(b: Builder, self: Tensor) -> tuple[Tensor, Tensor]:
    return log_sigmoid(b, self), b.Exp(b.Neg(b.Abs(self)))


@lowering("aten::softshrink")
def softshrink(b: Builder, self: Tensor, lambd: float = 0.5) -> Tensor:
    # ONNX Shrink turns NaN into 0.
    x = b.cast(self, type_promotion.computing_dtype(self.dtype, lambd))
    bounds = b.scalar(-lambd, x.dtype), b.scalar(lambd, x.dtype)
    return b.cast(b.Sub(x, b.Clip(x, *bounds)), self.dtype)


@lowering("aten::hardshrink")
def hardshrink(b: Builder, self: Tensor, lambd: float = 0.5) -> Tensor:
    return b.Where(b.LessOrEqual(b.Abs(self), lambd), 0, self)


@lowering("aten::threshold")
def threshold(b: Builder, self: Tensor, threshold: Scalar, value: Scalar) -> Tensor:
    x = b.cast(self, type_promotion.computing_dtype(self.dtype, threshold))
    below = b.LessOrEqual(x, b.scalar(threshold, x.dtype))
    return elementwise.where(b, below, b.scalar(value, self.dtype), self)


@lowering("aten::prelu")
def prelu(b: Builder, self: Tensor, weight: Tensor) -> Tensor:
    # One slope for all, or one for each channel, which is dim 1.
    trailing = [1] * max(self.rank - 2, 0) if self.rank > 1 else []
    dims = [*(weight.dim(axis) for axis in range(weight.rank)), *trailing]
    slope = b.reshape(weight, dims if self.rank else [])
    return prelu_kernel(b, self, slope)


@lowering("aten::_prelu_kernel")
def prelu_kernel(b: Builder, self: Tensor, weight: Tensor) -> Tensor:
    return b.PRelu(self, weight)


@lowering("aten::glu")
def glu(b: Builder, self: Tensor, dim: int = -1) -> Tensor:
    x = b.cast(self, type_promotion.once_rounded_dtype(self.dtype))
    value, gate = b.Split(x, axis=dim % self.rank, num_outputs=2, outputs=2)
    return b.cast(b.Mul(value, b.Sigmoid(gate)), self.dtype)


@lowering("aten::rrelu")
def rrelu(
    b: Builder, self: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Tensor:
    if not training:
        return leaky_relu(b, self, (lower + upper) / 2)
    drawn = random_numbers.uniform(b, b.dims(self), self.dtype)
    slope = b.Add(b.Mul(drawn, upper - lower), lower)
    return b.Where(b.Less(self, 0), b.Mul(self, slope), self)
