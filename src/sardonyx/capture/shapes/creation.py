"""The shapes of what is made from sizes, where PyTorch's own rules want these as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Size = int | torch.SymInt
_max: Callable[[Any, Any], Any] = torch.sym_max
_min: Callable[[Any, Any], Any] = torch.sym_min


def _row(size: Size, dtype: torch.dtype | None) -> torch.Tensor:
    return torch.empty([size], dtype=dtype)


def _spaced(
    start: Any, end: Any, steps: Size, *, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    return _row(steps, dtype)


def _spaced_by_powers(
    start: Any, end: Any, steps: Size, base: float = 10.0, **options: Any
) -> torch.Tensor:
    return _spaced(start, end, steps, **options)


def _window(
    window_length: Size, *shape: Any, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    return _row(window_length, dtype)


def _frequencies(
    n: Size, d: float = 1.0, *, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    return _row(n, dtype)


def _frequencies_of_half(n: Size, d: float = 1.0, **options: Any) -> torch.Tensor:
    return _frequencies(n // 2 + 1, d, **options)


def _on_or_below(row: Any, col: Any, offset: Any) -> Any:
    """How many elements of a matrix lie on a diagonal or below it."""

    def in_first_rows(count: Any) -> Any:
        """Of a triangle that begins with one element; no row is longer than the matrix."""
        rows = _max(0, _min(count, col))
        return rows * (rows + 1) // 2 + col * _max(0, count - col)

    return in_first_rows(row + offset) - in_first_rows(offset)


def _below(
    row: Size, col: Size, offset: Size = 0, *, dtype: torch.dtype | None = torch.int64, **_: Any
) -> torch.Tensor:
    return torch.empty([2, _on_or_below(row, col, offset)], dtype=dtype or torch.int64)


def _above(
    row: Size, col: Size, offset: Size = 0, *, dtype: torch.dtype | None = torch.int64, **_: Any
) -> torch.Tensor:
    count = row * col - _on_or_below(row, col, offset - 1)
    return torch.empty([2, count], dtype=dtype or torch.int64)


def _affine_grid(theta: torch.Tensor, size: Sequence[Size], align_corners: bool) -> torch.Tensor:
    spatial = len(size) - 2
    if tuple(theta.shape[1:]) != (spatial, spatial + 1):
        raise ValueError(f"a grid of {spatial} dims has no matrices of {tuple(theta.shape[1:])}")
    return theta.new_empty([theta.shape[0], *size[2:], spatial])


def _shape_as_tensor(self: torch.Tensor) -> torch.Tensor:
    return _row(self.dim(), torch.int64)


def _overloads(*names: str) -> list[Any]:
    """All that give their result, rather than write it."""
    packets = [getattr(aten, name) for name in names]
    return [
        getattr(packet, overload)
        for packet in packets
        for overload in packet.overloads()
        if not overload.endswith("out")
    ]


SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(_overloads("linspace"), _spaced),
    **dict.fromkeys(_overloads("logspace"), _spaced_by_powers),
    **dict.fromkeys(
        _overloads(
            *(f"{name}_window" for name in ("bartlett", "blackman", "hamming", "hann", "kaiser"))
        ),
        _window,
    ),
    aten.fft_fftfreq.default: _frequencies,
    aten.fft_rfftfreq.default: _frequencies_of_half,
    aten.tril_indices.default: _below,
    aten.triu_indices.default: _above,
    aten.affine_grid_generator.default: _affine_grid,
    aten._shape_as_tensor.default: _shape_as_tensor,
}
