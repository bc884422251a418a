"""The shapes that layers give: convolutions, pools, recurrent layers, attention.

A rule gives None where it leaves the answer to onnx's own inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from sardonyx.lower.values import Dim, Tensor

Shape: TypeAlias = tuple[Dim | None, ...] | None
Inputs: TypeAlias = Sequence[Tensor | None]
Attributes: TypeAlias = dict[str, Any]


def convolution(inputs: Inputs, attributes: Attributes) -> list[Shape] | None:
    shape, kernel = shape_of(inputs, 0), shape_of(inputs, 1)
    if shape is None or kernel is None or "auto_pad" in attributes:
        return None
    return [(shape[0], kernel[0], *_windows(shape[2:], kernel[2:], attributes))]


def pool(inputs: Inputs, attributes: Attributes) -> list[Shape] | None:
    """Of the largest values also where they are."""
    shape = shape_of(inputs, 0)
    if shape is None or "auto_pad" in attributes or attributes.get("ceil_mode"):
        return None
    pooled = (*shape[:2], *_windows(shape[2:], attributes["kernel_shape"], attributes))
    return [pooled, pooled]


def _windows(
    sizes: Sequence[Dim | None], kernel: Sequence[Dim | None], attributes: Attributes
) -> list[Dim | None]:
    """How many places a kernel has along each axis."""
    count = len(sizes)
    pads = attributes.get("pads") or [0] * (2 * count)
    strides = attributes.get("strides") or [1] * count
    dilations = attributes.get("dilations") or [1] * count
    return [
        (size + pads[axis] + pads[axis + count] - dilations[axis] * (length - 1) - 1)
        // strides[axis]
        + 1
        if isinstance(size, int) and isinstance(length, int)
        else None
        for axis, (size, length) in enumerate(zip(sizes, kernel, strict=True))
    ]


def transposed_convolution(inputs: Inputs, attributes: Attributes) -> list[Shape] | None:
    shape, kernel = shape_of(inputs, 0), shape_of(inputs, 1)
    if shape is None or kernel is None or attributes.keys() & {"auto_pad", "output_shape"}:
        return None
    count = len(shape) - 2
    pads = attributes.get("pads") or [0] * (2 * count)
    strides = attributes.get("strides") or [1] * count
    dilations = attributes.get("dilations") or [1] * count
    more = attributes.get("output_padding") or [0] * count
    sizes = [
        strides[axis] * (size - 1)
        + more[axis]
        + dilations[axis] * (length - 1)
        + 1
        - pads[axis]
        - pads[axis + count]
        if isinstance(size, int) and isinstance(length, int)
        else None
        for axis, (size, length) in enumerate(zip(shape[2:], kernel[2:], strict=True))
    ]
    channels = kernel[1]
    known = channels * attributes.get("group", 1) if isinstance(channels, int) else None
    return [(shape[0], known, *sizes)]


def gemm(inputs: Inputs, attributes: Attributes) -> list[Shape] | None:
    left, right = shape_of(inputs, 0), shape_of(inputs, 1)
    if left is None or right is None:
        return None
    rows = left[1] if attributes.get("transA") else left[0]
    columns = right[0] if attributes.get("transB") else right[1]
    return [(rows, columns)]


def recurrent(inputs: Inputs, attributes: Attributes) -> list[Shape] | None:
    """All hidden states, the last one, and the last cell state of an LSTM."""
    shape, weight = shape_of(inputs, 0), shape_of(inputs, 2)
    if shape is None or weight is None or attributes.get("layout"):
        return None
    length, batch, _ = shape
    directions, _, hidden = weight
    last = (directions, batch, hidden)
    return [(length, directions, batch, hidden), last, last]


def attention(inputs: Inputs, attributes: Attributes) -> list[Shape] | None:
    """Also the keys and values, and the scores."""
    query, key, value = shape_of(inputs, 0), shape_of(inputs, 1), shape_of(inputs, 2)
    has_past = any(tensor is not None for tensor in inputs[4:])
    if query is None or key is None or value is None or len(query) != 4 or has_past:
        return None
    return [(*query[:3], value[3]), key, value, (*query[:3], key[2])]


def shape_of(inputs: Inputs, position: int) -> Shape:
    tensor = inputs[position]
    assert tensor is not None
    return tensor.shape
