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
    "items_stack(Tensor[] items) -> Tensor",
    "items_join(Tensor[] stacked) -> Tensor",
    "items_reverse(Tensor stacked) -> Tensor",
    "items_set(Tensor stacked, Tensor item, Scalar position) -> Tensor",
)
_OPERATORS = torch.library.Library("sardonyx", "FRAGMENT")  # type: ignore[no-untyped-call]
for _schema in _SCHEMAS:
    _OPERATORS.define(_schema)  # type: ignore[no-untyped-call]

SEQUENCE = torch.ops.sardonyx.sequence.default
SEQUENCE_EMPTY = torch.ops.sardonyx.sequence_empty.default
SEQUENCE_UNSTACK = torch.ops.sardonyx.sequence_unstack.default
"""The slices of a tensor along its first dim."""
SEQUENCE_SPLIT = torch.ops.sardonyx.sequence_split.default
SEQUENCE_INSERT = torch.ops.sardonyx.sequence_insert.default
"""Inserts before a position; without one, at the end."""
SEQUENCE_ERASE = torch.ops.sardonyx.sequence_erase.default
SEQUENCE_AT = torch.ops.sardonyx.sequence_at.default
SEQUENCE_LENGTH = torch.ops.sardonyx.sequence_length.default
SEQUENCE_CONCAT = torch.ops.sardonyx.sequence_concat.default

ITEMS_STACK = torch.ops.sardonyx.items_stack.default
"""A list of tensors of one shape is one tensor, the items along its first dim."""
ITEMS_JOIN = torch.ops.sardonyx.items_join.default
ITEMS_REVERSE = torch.ops.sardonyx.items_reverse.default
ITEMS_SET = torch.ops.sardonyx.items_set.default

TAKES_ITEMS = frozenset({SEQUENCE, SEQUENCE_INSERT, ITEMS_STACK, ITEMS_JOIN, ITEMS_SET})
"""Operators whose result holds their arguments."""
SHOWS_ITEMS = frozenset(
    {SEQUENCE_UNSTACK, SEQUENCE_SPLIT, SEQUENCE_ERASE, SEQUENCE_AT, ITEMS_REVERSE}
)
"""Operators whose result shares memory with the items of their argument."""
