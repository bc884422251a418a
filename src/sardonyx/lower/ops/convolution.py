"""Convolutions and their transposes."""

from __future__ import annotations

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels.integer_convolution import (
    convolve_integers,
    convolve_integers_transposed,
)
from sardonyx.lower.kernels.windows import batched, per_axis, unbatched_like
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Ints, Tensor

_NONE, _ONE = [0], [1]
"""For each of the axes."""


@lowering(*(f"aten::conv{n}d{overload}" for n in (1, 2, 3) for overload in ("", ".padding")))
@lowering("aten::convolution", "aten::convolution_overrideable")
@lowering("aten::_convolution", "aten::_convolution.deprecated")
@lowering(
    "aten::conv_transpose1d",
    "aten::conv_transpose2d.input",
    "aten::conv_transpose3d.input",
    transposed=True,
)
def convolution(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = _ONE,
    padding: Ints | str = _NONE,
    dilation: Ints = _ONE,
    transposed: bool = False,
    output_padding: Ints = _NONE,
    groups: int = 1,
) -> Tensor:
    spatial = weight.rank - 2
    strides, dilations = per_axis(stride, spatial), per_axis(dilation, spatial)
    if padding == "same":
        kernel = _known_kernel_shape(b, weight)
        reach = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
        starts, ends = [r // 2 for r in reach], [r - r // 2 for r in reach]
    else:
        starts = ends = per_axis(_NONE if isinstance(padding, str) else padding, spatial)
    extra, missing = per_axis(output_padding, spatial), [0] * spatial
    x = batched(b, input, spatial)
    if not x.is_floating_point:
        kernel, pads = _known_kernel_shape(b, weight), [*starts, *ends]
        if transposed:
            result = convolve_integers_transposed(
                b, x, weight, kernel, strides, starts, extra, dilations, groups
            )
        else:
            result = convolve_integers(b, x, weight, kernel, strides, pads, dilations, groups)
        return unbatched_like(b, _biased(b, result, bias), input, spatial)
    if transposed and any(e >= s for e, s in zip(extra, strides, strict=True)):
        # Runtimes take an output_padding below the stride only: crop less at the end instead,
        # and where nothing is left to crop add what no element of the input reaches.
        ends = [max(p - e, 0) for p, e in zip(starts, extra, strict=True)]
        missing = [max(e - p, 0) for p, e in zip(starts, extra, strict=True)]
        extra = [0] * spatial
    result = b.op(
        "ConvTranspose" if transposed else "Conv",
        x,
        weight,
        None if any(missing) else bias,
        kernel_shape=_kernel_shape(weight),
        strides=strides,
        pads=[*starts, *ends],
        output_padding=extra if transposed else None,
        dilations=dilations,
        group=groups,
    )
    # onnx infers nothing where the size of the kernel is dynamic.
    channels = weight.dim(1) * groups if transposed else weight.dim(0)
    result = b.with_shape(result, [x.dim(0), channels, *[None] * spatial])
    if any(missing):
        result = _biased(b, b.Pad(result, [0] * (spatial + 2) + [0, 0, *missing]), bias)
    return unbatched_like(b, result, input, spatial)


def _biased(b: Builder, result: Tensor, bias: Tensor | None) -> Tensor:
    if bias is None:
        return result
    return b.Add(result, b.unsqueeze(bias, list(range(1, result.rank - 1))))


def _kernel_shape(weight: Tensor) -> list[int] | None:
    sizes = [weight.static_dim(axis) for axis in range(2, weight.rank)]
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) else None


def _known_kernel_shape(b: Builder, weight: Tensor) -> list[int]:
    kernel = _kernel_shape(weight)
    if kernel is None:
        raise b.refuse("the size of the kernel must be known at export time")
    return kernel


@lowering("aten::conv_tbc")
def conv_tbc(b: Builder, self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """(time, batch, channels), with a (kernel, channels in, channels out) weight."""
    x, kernel = b.transpose(self, [1, 2, 0]), b.transpose(weight, [2, 1, 0])
    result = convolution(b, x, kernel, bias, padding=[pad])
    return b.transpose(result, [2, 0, 1])
