"""The shapes of what is made from sizes, where PyTorch's own rules want these as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Size = int | torch.SymInt
_max: Callable[[Any, Any], Any] = torch.sym_max
_min: Callable[[Any, Any], Any] = torch.sym_min


def _row(size: Size, *shape: Any, dtype: torch.dtype | None, **options: Any) -> torch.Tensor:
    return torch.empty([size], dtype=dtype)


def _spaced(start: Any, end: Any, steps: Size, *base: Any, **options: Any) -> torch.Tensor:
    return _row(steps, **options)


def _frequencies_of_half(n: Size, d: float, **options: Any) -> torch.Tensor:
    return _row(n // 2 + 1, **options)


def _on_or_below(row: Any, col: Any, offset: Any) -> Any:
    """How many elements of a matrix lie on a diagonal or below it."""

    def in_first_rows(count: Any) -> Any:
        """Of a triangle that begins with one element; no row is longer than the matrix."""
        rows = _max(0, _min(count, col))
        return rows * (rows + 1) // 2 + col * _max(0, count - col)

    return in_first_rows(row + offset) - in_first_rows(offset)


def _below(
    row: Size, col: Size, offset: Size, *, dtype: torch.dtype | None, **options: Any
) -> torch.Tensor:
    return torch.empty([2, _on_or_below(row, col, offset)], dtype=dtype or torch.int64)


def _above(
    row: Size, col: Size, offset: Size, *, dtype: torch.dtype | None, **options: Any
) -> torch.Tensor:
    count = row * col - _on_or_below(row, col, offset - 1)
    return torch.empty([2, count], dtype=dtype or torch.int64)


def _affine_grid(theta: torch.Tensor, size: Sequence[Size], align_corners: bool) -> torch.Tensor:
    spatial = len(size) - 2
    if tuple(theta.shape[1:]) != (spatial, spatial + 1):
        raise ValueError(f"a grid of {spatial} dims has no matrices of {tuple(theta.shape[1:])}")
    return theta.new_empty([theta.shape[0], *size[2:], spatial])


def _istft(
    self: torch.Tensor,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: torch.Tensor | None,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: Size | None,
    return_complex: bool,
) -> torch.Tensor:
    """A signal that is put together again from its short-time transforms."""
    if length is None:
        step = n_fft // 4 if hop_length is None else hop_length
        length = n_fft + step * (self.shape[-1] - 1) - (2 * (n_fft // 2) if center else 0)
    dtype = self.dtype if return_complex else self.dtype.to_real()
    return self.new_empty([*self.shape[:-2], length], dtype=dtype)


def _shape_as_tensor(self: torch.Tensor) -> torch.Tensor:
    return _row(self.dim(), dtype=torch.int64)


def _overloads(*names: str) -> list[Any]:
    """All that give their result, rather than write it."""
    packets = [getattr(aten, name) for name in names]
    return [
        getattr(packet, overload)
        for packet in packets
        for overload in packet.overloads()
        if not overload.endswith("out")
    ]


_WINDOWS = [f"{name}_window" for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")]
SHAPE_RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(_overloads("linspace", "logspace"), _spaced),
    **dict.fromkeys(_overloads(*_WINDOWS, "fft_fftfreq"), _row),
    aten.fft_rfftfreq.default: _frequencies_of_half,
    aten.tril_indices.default: _below,
    aten.triu_indices.default: _above,
    aten.affine_grid_generator.default: _affine_grid,
    aten.istft.default: _istft,
    aten._shape_as_tensor.default: _shape_as_tensor,
}
