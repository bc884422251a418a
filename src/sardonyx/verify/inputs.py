"""Draws further inputs for a model: other sizes for its dynamic dims, values like the example's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import sympy
import torch

Dims = tuple[int | str, ...]


class UnknownSizeError(ValueError):
    """A symbolic dim whose size does not follow from the inputs."""


def symbol_sizes(dims: Sequence[Dims], examples: Sequence[torch.Tensor]) -> dict[str, int]:
    """The size of every symbol that is itself a dim of an example."""
    sizes: dict[str, int] = {}
    for input_dims, example in zip(dims, examples, strict=True):
        for dim, size in zip(input_dims, example.shape, strict=True):
            if isinstance(dim, str) and dim.isidentifier():
                sizes.setdefault(dim, int(size))
    return sizes


def other_sizes(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Sizes that differ from the example's in every symbol, the least demanding first.

    Symbols of one size get different ones, so that a mix-up of two dims shows; a model that wants
    multiples of some number is offered multiples of the example's sizes.
    """
    yield {name: size + 1 + index for index, (name, size) in enumerate(sizes.items())}
    yield {name: size + 1 for name, size in sizes.items()}
    yield {name: max(size, 1) * 2 for name, size in sizes.items()}
    if any(size > 1 for size in sizes.values()):
        yield {name: size - 1 if size > 1 else size + 1 for name, size in sizes.items()}


def resized(dims: Dims, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape `dims` stands for under `sizes`; a dim may be an expression such as `2*batch`."""
    return tuple(dim if isinstance(dim, int) else _evaluate(dim, sizes) for dim in dims)


def _evaluate(expression: str, sizes: Mapping[str, int]) -> int:
    if expression in sizes:
        return sizes[expression]
    if expression.isidentifier():
        raise UnknownSizeError(f"the size of {expression} does not follow from the inputs")
    symbols = {name: sympy.Symbol(name) for name in sizes}
    value = sympy.sympify(expression, locals=symbols).subs(
        {symbols[name]: size for name, size in sizes.items()}
    )
    if not value.is_Integer or value < 0:
        raise UnknownSizeError(f"{expression} is not a size where {sizes_label(sizes)}")
    return int(value)


def sizes_label(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def drawn_like(
    example: torch.Tensor, shape: Sequence[int], generator: torch.Generator
) -> torch.Tensor:
    """A tensor of `shape` with values a model that takes `example` can be expected to take.

    Integers stay within the example's range, since they may be indices; floats keep its spread,
    and are not negative where it has no negative value.
    """
    dtype = example.dtype
    if dtype == torch.bool:
        drawn = torch.rand(shape, generator=generator) < 0.5
    elif dtype.is_complex:
        spread = _spread(torch.view_as_real(example.detach().resolve_conj()))
        parts = [torch.randn(shape, generator=generator) * spread for _ in range(2)]
        drawn = torch.complex(parts[0], parts[1])
    elif dtype.is_floating_point:
        values = example.detach().cpu().to(torch.float64)
        values = values[values.isfinite()]
        drawn = torch.randn(shape, generator=generator) * _spread(values)
        if values.numel() and 0 <= values.min() < values.max():
            low, high = float(values.min()), float(values.max())
            drawn = torch.rand(shape, generator=generator) * (high - low) + low
    else:
        values = example.detach().cpu().to(torch.int64)
        low, high = (int(values.min()), int(values.max())) if values.numel() else (0, 0)
        drawn = torch.full(tuple(shape), low)
        if low < high:
            end = min(high + 1, torch.iinfo(torch.int64).max)
            drawn = torch.randint(low, end, tuple(shape), generator=generator)
    return drawn.to(dtype).to(example.device)


def _spread(values: torch.Tensor) -> float:
    values = values.to(torch.float64)
    spread = float(values.std()) if values.numel() > 1 else 0.0
    return spread if spread > 0 else 1.0
