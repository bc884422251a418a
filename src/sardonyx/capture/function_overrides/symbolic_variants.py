"""Functions of torch that would specialize sizes, made of operators that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F


def _affine_grid(theta: torch.Tensor, size: Any, align_corners: bool | None = None) -> torch.Tensor:
    """Without its warning, for which it compares the sizes."""
    return torch.affine_grid_generator(theta, size, bool(align_corners))


def _kron(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    rank = max(input.dim(), other.dim())
    left, right = (x.reshape([1] * (rank - x.dim()) + list(x.shape)) for x in (input, other))
    product = left[(..., *(slice(None), None) * rank)] * right[(..., *(None, slice(None)) * rank)]
    return product.reshape([m * n for m, n in zip(left.shape, right.shape, strict=True)])


def _vander(x: torch.Tensor, N: Any = None, increasing: bool = False) -> torch.Tensor:
    count = x.shape[0] if N is None else N
    factors = x[:, None].expand(x.shape[0], count)
    is_first = torch.arange(count, device=x.device) == 0
    powers = torch.where(is_first, torch.ones_like(factors), factors).cumprod(1)
    return powers if increasing else powers.flip(1)


def _fill_diagonal(self: torch.Tensor, fill_value: Any, wrap: bool = False) -> torch.Tensor:
    if self.dim() != 2:  # all of one size
        return self.fill_diagonal_(fill_value, wrap)
    if not wrap:
        self.diagonal().fill_(fill_value)
        return self
    rows, columns = (torch.arange(size, device=self.device) for size in self.shape)
    return self.masked_fill_((rows % (self.shape[1] + 1))[:, None] == columns, fill_value)


# -- differences and areas -----------------------------------------------------------------------


def _gradient(
    input: torch.Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[torch.Tensor, ...]:
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    steps = 1 if spacing is None else spacing
    spacings = steps if isinstance(steps, (list, tuple)) else [steps] * len(dims)
    return tuple(
        _gradient_along(input, axis % input.dim(), step, edge_order)
        for axis, step in zip(dims, spacings, strict=True)
    )


def _gradient_along(x: torch.Tensor, axis: int, spacing: Any, edge_order: int) -> torch.Tensor:
    """`spacing` is the distance of neighbours, or a tensor of all places."""

    def element(index: int) -> torch.Tensor:
        return x.select(axis, index).unsqueeze(axis)

    def inner(start: int) -> torch.Tensor:
        return x.narrow(axis, start, x.shape[axis] - 2)

    if not (isinstance(spacing, torch.Tensor) and spacing.dim() == 1):
        center = (inner(2) - inner(0)) / (2 * spacing)
        if edge_order == 1:
            first, last = element(1) - element(0), element(-1) - element(-2)
        else:
            first = -1.5 * element(0) + 2 * element(1) - 0.5 * element(2)
            last = 0.5 * element(-3) - 2 * element(-2) + 1.5 * element(-1)
        return torch.cat([first / spacing, center, last / spacing], axis)
    gaps = spacing.diff()
    shape = [1] * axis + [-1] + [1] * (x.dim() - axis - 1)
    before, after = gaps[:-1].reshape(shape), gaps[1:].reshape(shape)
    both = before + after
    center = (
        inner(0) * (-after / (before * both))
        + inner(1) * ((after - before) / (before * after))
        + inner(2) * (before / (after * both))
    )
    if edge_order == 1:
        first = (element(1) - element(0)) / gaps[0]
        last = (element(-1) - element(-2)) / gaps[-1]
    else:
        first = _at_edge([element(i) for i in (0, 1, 2)], gaps[0], gaps[1])
        last = -_at_edge([element(i) for i in (-1, -2, -3)], gaps[-1], gaps[-2])
    return torch.cat([first, center, last], axis)


def _at_edge(
    elements: Sequence[torch.Tensor], gap: torch.Tensor, next_gap: torch.Tensor
) -> torch.Tensor:
    """The slope of the parabola through the three elements, at the first."""
    both = gap + next_gap
    return (
        elements[0] * (-(both + gap) / (gap * both))
        + elements[1] * (both / (gap * next_gap))
        + elements[2] * (-gap / (next_gap * both))
    )


def _trapezoid(
    y: torch.Tensor, x: torch.Tensor | None = None, *, dx: Any = 1, dim: int = -1
) -> torch.Tensor:
    axis = dim % y.dim()
    if x is None:
        edges = _piece(y, axis, 0, 1) + _piece(y, axis, -1, None)
        result: torch.Tensor = (y.sum(axis) - (edges * 0.5).sum(axis)) * dx
        return result
    along = x.reshape([-1] + [1] * (y.dim() - axis - 1)) if x.dim() == 1 else x
    heights = _piece(y, axis, 0, -1) + _piece(y, axis, 1, None)
    return (along.diff(dim=axis - y.dim()) * heights).sum(axis) / 2


def _piece(x: torch.Tensor, axis: int, start: int, end: int | None) -> torch.Tensor:
    return x[(slice(None),) * axis + (slice(start, end),)]


def _pad_sequence(
    sequences: Sequence[torch.Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> torch.Tensor:
    larger: Callable[[Any, Any], Any] = torch.sym_max
    longest: Any = sequences[0].shape[0]
    for sequence in sequences[1:]:
        longest = larger(longest, sequence.shape[0])
    padded = []
    for sequence in sequences:
        more = longest - sequence.shape[0]
        ends = (0, more) if padding_side == "right" else (more, 0)
        around = [0, 0] * (sequence.dim() - 1)
        padded.append(torch.constant_pad_nd(sequence, [*around, *ends], padding_value))
    return torch.stack(padded, 0 if batch_first else 1)


SYMBOLIC_OPERATORS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.pad_sequence.default: _pad_sequence
}
"""The same for operators of ATen."""
SYMBOLIC_VARIANTS: dict[Any, Callable[..., Any]] = {
    F.affine_grid: _affine_grid,
    torch.kron: _kron,
    torch.Tensor.kron: _kron,
    torch.vander: _vander,
    torch.Tensor.fill_diagonal_: _fill_diagonal,
    torch.gradient: _gradient,
    torch.trapezoid: _trapezoid,
    torch.trapz: _trapezoid,
}
