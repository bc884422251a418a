"""Lists of tensors whose length is known at run time, as ONNX sequences."""

from __future__ import annotations

from typing import Any

import torch

from sardonyx.lower.builder import Builder
from sardonyx.lower.onnx_types.schemas import onnx_dtype
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Scalar, Tensor


@lowering("sardonyx::sequence")
def sequence(b: Builder, items: list[Tensor]) -> Tensor:
    return _sequence(b, b.SequenceConstruct(*items), items[0].dtype)


@lowering("sardonyx::sequence_empty")
def sequence_empty(b: Builder, dtype: torch.dtype) -> Tensor:
    return _sequence(b, b.SequenceEmpty(dtype=onnx_dtype(dtype)), dtype)


@lowering("sardonyx::sequence_unstack")
def sequence_unstack(b: Builder, stacked: Tensor) -> Tensor:
    return _split(b, stacked, None, axis=0, keepdims=0)


@lowering("sardonyx::sequence_split")
def sequence_split(b: Builder, self: Tensor, sizes: Tensor, dim: int) -> Tensor:
    return _split(b, self, sizes, axis=dim)


def _split(b: Builder, x: Tensor, sizes: Tensor | None, **attributes: Any) -> Tensor:
    return _sequence(b, b.SplitToSequence(x, sizes, **attributes), x.dtype)


@lowering("sardonyx::sequence_insert")
def sequence_insert(
    b: Builder, sequence: Tensor, item: Tensor, position: Scalar | Tensor | None = None
) -> Tensor:
    made = b.SequenceInsert(sequence, item, _position(b, position))
    return _sequence(b, made, sequence.dtype)


@lowering("sardonyx::sequence_erase")
def sequence_erase(b: Builder, sequence: Tensor, position: Scalar | Tensor) -> Tensor:
    return _sequence(b, b.SequenceErase(sequence, _position(b, position)), sequence.dtype)


@lowering("sardonyx::sequence_at")
def sequence_at(b: Builder, sequence: Tensor, position: Scalar) -> Tensor:
    return _tensor(b, b.SequenceAt(sequence, _position(b, position)), sequence.dtype)


@lowering("sardonyx::sequence_length")
def sequence_length(b: Builder, sequence: Tensor) -> Tensor:
    return _tensor(b, b.SequenceLength(sequence), torch.int64)


@lowering("sardonyx::sequence_concat")
def sequence_concat(b: Builder, sequence: Tensor, dim: int, new_dim: bool) -> Tensor:
    made = b.ConcatFromSequence(sequence, axis=dim, new_axis=int(new_dim))
    return _tensor(b, made, sequence.dtype)


@lowering("sardonyx::items_stack")
def items_stack(b: Builder, items: list[Tensor]) -> Tensor:
    rows = [b.unsqueeze(item, [0]) for item in items]
    return rows[0] if len(rows) == 1 else b.Concat(*rows, axis=0)


@lowering("sardonyx::items_join")
def items_join(b: Builder, stacked: list[Tensor]) -> Tensor:
    return b.Concat(*stacked, axis=0)


@lowering("sardonyx::items_reverse")
def items_reverse(b: Builder, stacked: Tensor) -> Tensor:
    return b.Slice(stacked, [-1], [-(2**63) + 1], [0], [-1])


@lowering("sardonyx::items_set")
def items_set(b: Builder, stacked: Tensor, item: Tensor, position: Scalar) -> Tensor:
    index = b.reshape(b.scalar(position, torch.int64), [1, 1])
    return b.ScatterND(stacked, index, b.unsqueeze(item, [0]))


def _position(b: Builder, position: Scalar | Tensor | None) -> Tensor | None:
    return None if position is None else b.scalar(position, torch.int64)


def _sequence(b: Builder, made: Tensor, dtype: torch.dtype) -> Tensor:
    return b.declare(Tensor(made.value, dtype, None, is_sequence=True))


def _tensor(b: Builder, made: Tensor, dtype: torch.dtype) -> Tensor:
    return b.declare(Tensor(made.value, dtype, None))
