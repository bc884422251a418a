"""Normalizations: batch, layer, group, instance, RMS and of weights."""

from __future__ import annotations

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.registry import first_result, lowering
from sardonyx.lower.values import Dim, Dims, Tensor, product_of

_HALF = (torch.float16, torch.bfloat16)


def _computing_dtype(x: Tensor) -> torch.dtype:
    """ATen computes statistics of half precision tensors in float32."""
    return torch.float32 if x.dtype in _HALF else x.dtype


def _shared_dtype(x: Tensor, *others: Tensor | None) -> torch.dtype:
    """The dtype to normalize in; with half precision input, parameters may be float32."""
    dtype = x.dtype
    for other in others:
        if other is not None:
            dtype = torch.promote_types(dtype, other.dtype)
    return dtype


# -- batch normalization -----------------------------------------------------------------------


def _normalize_channels(
    b: Builder,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
) -> Tensor:
    dtype = _shared_dtype(x, weight, bias, mean, variance)
    scale = b.full_like(mean, 1, dtype) if weight is None else b.cast(weight, dtype)
    shift = b.full_like(mean, 0, dtype) if bias is None else b.cast(bias, dtype)
    result = b.BatchNormalization(
        b.cast(x, dtype), scale, shift, b.cast(mean, dtype), b.cast(variance, dtype), epsilon=eps
    )
    return b.cast(result, x.dtype)


def _batch_statistics(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of each channel."""
    wide = b.cast(x, _computing_dtype(x))
    axes = [axis for axis in range(x.rank) if axis != 1]
    mean = b.ReduceMean(wide, axes, keepdims=1)
    deviation = b.Sub(wide, mean)
    variance = b.ReduceMean(b.Mul(deviation, deviation), axes, keepdims=0)
    return b.squeeze(mean, axes), variance


def _training_form(
    b: Builder,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalized by the batch's own statistics, and the running ones moved towards them."""
    dtype = _shared_dtype(x, weight, bias, running_mean, running_var)
    dtype = torch.float32 if dtype in _HALF else dtype
    scale = b.full_like(running_mean, 1, dtype) if weight is None else b.cast(weight, dtype)
    shift = b.full_like(running_mean, 0, dtype) if bias is None else b.cast(bias, dtype)
    wide = b.cast(x, dtype)
    old_mean, old_var = (b.cast(old, dtype) for old in (running_mean, running_var))
    # ONNX's momentum is the part of the old statistics that stays.
    result, new_mean, moved_var = b.BatchNormalization(
        wide,
        scale,
        shift,
        copied_at_run_time(b, old_mean, wide),
        copied_at_run_time(b, old_var, wide),
        epsilon=eps,
        momentum=1 - momentum,
        training_mode=1,
        outputs=3,
    )
    result = b.cast(result, x.dtype)
    counted = product_of(size for axis, size in enumerate(b.dims(x)) if axis != 1)
    samples = b.scalar(counted, dtype)
    if dtype == torch.float64:  # the attribute has the digits of a float32
        mean, variance = _batch_statistics(b, x)
        unbiased = b.Div(b.Mul(variance, samples), b.Sub(samples, 1))
        return result, _moved(b, old_mean, mean, momentum), _moved(b, old_var, unbiased, momentum)
    # PyTorch's running variance is of the unbiased kind, ONNX's is not.
    kept = b.Mul(old_var, 1 - momentum)
    new_var = b.Div(b.Sub(b.Mul(moved_var, samples), kept), b.Sub(samples, 1))
    return result, new_mean, new_var


def _moved(b: Builder, old: Tensor, new: Tensor, momentum: float) -> Tensor:
    return b.Add(b.Mul(old, 1 - momentum), b.Mul(new, momentum))


def copied_at_run_time(b: Builder, constant: Tensor, x: Tensor) -> Tensor:
    """ONNX Runtime writes the new statistics over the old ones, be they a weight of the file that
    it has found equal to another weight: it gets a copy, which no optimization takes away."""
    first = b.Gather(b.reshape(x, [-1]), b.const(0), axis=0)
    return b.Where(b.IsNaN(first), constant, constant)


def _inverse_deviation(b: Builder, variance: Tensor, eps: float) -> Tensor:
    return b.Reciprocal(b.Sqrt(b.Add(variance, eps)))


@lowering(
    "aten::native_batch_norm",
    "aten::_native_batch_norm_legit.no_stats",
    "aten::_native_batch_norm_legit_no_training",
)
def native_batch_norm(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[Tensor, ...]:
    if not training and running_mean is not None and running_var is not None:
        result = _normalize_channels(b, input, weight, bias, running_mean, running_var, eps)
        nothing = b.const(torch.empty(0, dtype=input.dtype))
        return result, nothing, nothing
    mean, variance = _batch_statistics(b, input)
    result = _normalize_channels(b, input, weight, bias, mean, variance, eps)
    inverse = _inverse_deviation(b, variance, eps)
    return result, b.cast(mean, input.dtype), b.cast(inverse, input.dtype)


lowering("aten::batch_norm")(first_result(native_batch_norm))


@lowering("aten::_native_batch_norm_legit_functional")
@lowering("aten::_batch_norm_with_update_functional", training=True, reserved=True)
def batch_norm_functional(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
    reserved: bool = False,
) -> tuple[Tensor, ...]:
    """`reserved`: whether memory for the backward pass, here empty, is among the results."""
    statistics = running_mean, running_var
    results = native_batch_norm(b, input, weight, bias, *statistics, training, eps=eps)
    if not training:
        return *results, *statistics
    result, *moved = _training_form(b, input, weight, bias, *statistics, momentum, eps)
    nothing = [b.const(torch.empty(0, dtype=torch.uint8))] if reserved else []
    return result, *results[1:], *nothing, *moved


@lowering("aten::instance_norm")
def instance_norm(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise b.refuse("use_input_stats=False needs running statistics")
        return _normalize_channels(b, input, weight, bias, running_mean, running_var, eps)
    dtype = _shared_dtype(input, weight, bias)
    channels = [input.dim(1)]
    scale = b.full(channels, 1, dtype) if weight is None else b.cast(weight, dtype)
    shift = b.full(channels, 0, dtype) if bias is None else b.cast(bias, dtype)
    result = b.InstanceNormalization(b.cast(input, dtype), scale, shift, epsilon=eps)
    return b.cast(result, input.dtype)


# -- layer, RMS and group normalization --------------------------------------------------------


def _statistics(b: Builder, x: Tensor, axes: list[int], eps: float) -> tuple[Tensor, Tensor]:
    """Mean and inverse deviation over `axes`, which are kept."""
    wide = b.cast(x, _computing_dtype(x))
    mean = b.ReduceMean(wide, axes, keepdims=1)
    deviation = b.Sub(wide, mean)
    variance = b.ReduceMean(b.Mul(deviation, deviation), axes, keepdims=1)
    return mean, _inverse_deviation(b, variance, eps)


@lowering("aten::layer_norm")
def layer_norm(
    b: Builder,
    input: Tensor,
    normalized_shape: Dims,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    dtype = _shared_dtype(input, weight, bias)
    axis = -len(normalized_shape)
    x = b.cast(input, dtype)
    if dtype == torch.float64:
        # ONNX computes the statistics of LayerNormalization in float32 at most.
        mean, inverse = _statistics(b, x, list(range(axis, 0)), eps)
        result = _scaled(b, b.Mul(b.Sub(x, mean), inverse), weight, bias, [])
        return b.cast(result, input.dtype)
    scale = b.full(normalized_shape, 1, dtype) if weight is None else b.cast(weight, dtype)
    shift = None if bias is None else b.cast(bias, dtype)
    return b.cast(b.LayerNormalization(x, scale, shift, axis=axis, epsilon=eps), input.dtype)


def _scaled(
    b: Builder, x: Tensor, weight: Tensor | None, bias: Tensor | None, trailing: list[int]
) -> Tensor:
    """By parameters that get the `trailing` axes."""
    if weight is not None:
        x = b.Mul(x, b.unsqueeze(b.cast(weight, x.dtype), trailing))
    return x if bias is None else b.Add(x, b.unsqueeze(b.cast(bias, x.dtype), trailing))


@lowering("aten::native_layer_norm")
def native_layer_norm(
    b: Builder,
    input: Tensor,
    normalized_shape: Dims,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    result = layer_norm(b, input, normalized_shape, weight, bias, eps)
    mean, inverse = _statistics(b, input, list(range(-len(normalized_shape), 0)), eps)
    return result, b.cast(mean, input.dtype), b.cast(inverse, input.dtype)


@lowering("aten::rms_norm")
def rms_norm(
    b: Builder,
    input: Tensor,
    normalized_shape: Dims,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    dtype = _shared_dtype(input, weight)
    if eps is None:
        eps = torch.finfo(_computing_dtype(input)).eps
    x = b.cast(input, dtype)
    scale = b.full(normalized_shape, 1, dtype) if weight is None else b.cast(weight, dtype)
    axes = list(range(-len(normalized_shape), 0))
    if dtype == torch.float64:
        result = b.Mul(b.Mul(x, _inverse_root_mean_square(b, x, axes, eps)), scale)
    else:
        result = b.RMSNormalization(x, scale, axis=axes[0], epsilon=eps)
    return b.cast(result, input.dtype)


def _inverse_root_mean_square(b: Builder, x: Tensor, axes: list[int], eps: float) -> Tensor:
    wide = b.cast(x, _computing_dtype(x))
    return _inverse_deviation(b, b.ReduceMean(b.Mul(wide, wide), axes, keepdims=1), eps)


@lowering("aten::_fused_rms_norm")
def fused_rms_norm(
    b: Builder, input: Tensor, normalized_shape: Dims, weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    if eps is None:
        eps = torch.finfo(_computing_dtype(input)).eps
    axes = list(range(-len(normalized_shape), 0))
    result = rms_norm(b, input, normalized_shape, weight, eps)
    return result, _inverse_root_mean_square(b, input, axes, eps)


@lowering("aten::group_norm")
def group_norm(
    b: Builder,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    dtype = _shared_dtype(input, weight, bias)
    x = b.cast(input, dtype)
    channels = [input.dim(1)]
    if dtype == torch.float64:
        grouped = b.Reshape(x, [0, num_groups, -1])
        mean, inverse = _statistics(b, grouped, [2], eps)
        normalized = b.reshape(b.Mul(b.Sub(grouped, mean), inverse), b.dims(input))
        return _scaled(b, normalized, weight, bias, list(range(1, input.rank - 1)))
    scale = b.full(channels, 1, dtype) if weight is None else b.cast(weight, dtype)
    shift = b.full(channels, 0, dtype) if bias is None else b.cast(bias, dtype)
    result = b.GroupNormalization(x, scale, shift, num_groups=num_groups, epsilon=eps)
    return b.cast(result, input.dtype)


@lowering("aten::native_group_norm")
def native_group_norm(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: Dim,
    C: Dim,
    HxW: Dim,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    result = group_norm(b, input, group, weight, bias, eps)
    mean, inverse = _statistics(b, b.Reshape(input, [0, group, -1]), [2], eps)
    mean, inverse = (b.cast(b.squeeze(s, [2]), input.dtype) for s in (mean, inverse))
    return result, mean, inverse


# -- weight normalization ----------------------------------------------------------------------


@lowering("aten::_weight_norm_interface")
def weight_norm_interface(b: Builder, v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """The norm is over every axis but `dim`; over all of them where that is -1."""
    axes = [axis for axis in range(v.rank) if dim == -1 or axis != dim % v.rank]
    norm = b.ReduceL2(v, axes, keepdims=int(dim != -1))
    return b.Mul(v, b.Div(g, norm)), norm


lowering("aten::_weight_norm")(first_result(weight_norm_interface))
