"""Operators on lists of tensors whose length is known at run time, which ATen does not have."""

from __future__ import annotations

import torch

_SCHEMAS = (
    "sequence(Tensor[] items) -> Tensor",
    "sequence_empty(ScalarType dtype) -> Tensor",
    "sequence_unstack(Tensor stacked) -> Tensor",
    "sequence_split(Tensor self, Tensor sizes, int dim) -> Tensor",
    "sequence_insert(Tensor sequence, Tensor item, Scalar? position) -> Tensor",
    "sequence_erase(Tensor sequence, Scalar position) -> Tensor",
    "sequence_at(Tensor sequence, Scalar position) -> Tensor",
    "sequence_length(Tensor sequence) -> Tensor",
    "sequence_concat(Tensor sequence, int dim, bool new_dim) -> Tensor",
)
_OPERATORS = torch.library.Library("sardonyx", "FRAGMENT")  # type: ignore[no-untyped-call]
for _schema in _SCHEMAS:
    _OPERATORS.define(_schema)  # type: ignore[no-untyped-call]

SEQUENCE = torch.ops.sardonyx.sequence.default
SEQUENCE_EMPTY = torch.ops.sardonyx.sequence_empty.default
SEQUENCE_UNSTACK = torch.ops.sardonyx.sequence_unstack.default
"""The items of a tensor along its first dim."""
SEQUENCE_SPLIT = torch.ops.sardonyx.sequence_split.default
SEQUENCE_INSERT = torch.ops.sardonyx.sequence_insert.default
"""Before a position; without one, at the end."""
SEQUENCE_ERASE = torch.ops.sardonyx.sequence_erase.default
SEQUENCE_AT = torch.ops.sardonyx.sequence_at.default
SEQUENCE_LENGTH = torch.ops.sardonyx.sequence_length.default
SEQUENCE_CONCAT = torch.ops.sardonyx.sequence_concat.default

TAKES_ITEMS = frozenset({SEQUENCE, SEQUENCE_INSERT})
"""Whose result holds the tensors it was given."""
SHOWS_ITEMS = frozenset({SEQUENCE_UNSTACK, SEQUENCE_SPLIT, SEQUENCE_ERASE, SEQUENCE_AT})
"""Whose result shares memory with what its argument holds."""
