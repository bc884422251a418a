"""Draws further inputs for a model: other sizes for its dynamic dims, values like the example's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from sardonyx.aten.signature import DynamicDim, InputSpec


class UnknownSizeError(ValueError):
    """A dynamic dim whose size does not follow from the sizes that are drawn."""


def example_sizes(specs: Sequence[InputSpec], examples: Sequence[torch.Tensor]) -> dict[str, int]:
    """The sizes of the dynamic dims that are not computed from another one, by name."""
    sizes: dict[str, int] = {}
    for spec, example in zip(specs, examples, strict=True):
        for axis, dim in _dynamic_dims(spec).items():
            if dim.derive is None:
                sizes.setdefault(dim.name, int(example.shape[axis]))
    return sizes


def resized(spec: InputSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an input under `sizes`; a derived dim such as `2*batch` follows its root."""
    dynamic = _dynamic_dims(spec)
    return tuple(
        _size(dynamic[axis], sizes) if axis in dynamic else int(dim)
        for axis, dim in enumerate(spec.dims)
    )


def _dynamic_dims(spec: InputSpec) -> dict[int, DynamicDim]:
    return {
        axis: spec.dynamic.get(axis, DynamicDim(dim))
        for axis, dim in enumerate(spec.dims)
        if isinstance(dim, str)
    }


def _size(dim: DynamicDim, sizes: Mapping[str, int]) -> int:
    missing = [root for root in dim.roots if root not in sizes]
    if missing:
        raise UnknownSizeError(
            f"the size of {dim.name} follows from {missing[0]}, which is no dim of an input"
        )
    size = dim.size(sizes)
    if size < 0:
        raise UnknownSizeError(f"{dim.name} is not a size where {sizes_label(sizes)}")
    return size


def within_limits(specs: Sequence[InputSpec], sizes: Mapping[str, int]) -> dict[str, int]:
    """The nearest sizes that the caller allows."""
    limited = dict(sizes)
    for spec in specs:
        for dim in _dynamic_dims(spec).values():
            if dim.name in limited:
                limited[dim.name] = dim.within(limited[dim.name])
    return limited


def sizes_label(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def mirrored(drawn: torch.Tensor) -> torch.Tensor:
    """Values of the same range, the large ones where the small ones were."""
    if drawn.dtype == torch.bool:
        return ~drawn
    if drawn.dtype.is_complex or drawn.numel() == 0:
        return -drawn
    is_float = drawn.dtype.is_floating_point
    wide = drawn.to(torch.float64 if is_float else torch.int64)
    around_zero = is_float and bool((wide < 0).any())
    made = -wide if around_zero else wide.min() + wide.max() - wide
    return torch.empty_like(drawn).copy_(made.to(drawn.dtype))
