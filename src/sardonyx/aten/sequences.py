"""Operators on lists of tensors whose length is known at run time, which ATen does not have."""

from __future__ import annotations

from sardonyx.aten.control_flow import define_operator

SEQUENCE = define_operator("sequence(Tensor[] items) -> Tensor")
SEQUENCE_EMPTY = define_operator("sequence_empty(ScalarType dtype) -> Tensor")
SEQUENCE_UNSTACK = define_operator("sequence_unstack(Tensor stacked) -> Tensor")
"""The slices of a tensor along its first dim."""
SEQUENCE_SPLIT = define_operator("sequence_split(Tensor self, Tensor sizes, int dim) -> Tensor")
SEQUENCE_INSERT = define_operator(
    "sequence_insert(Tensor sequence, Tensor item, Scalar? position) -> Tensor"
)
"""Inserts before a position; without one, at the end."""
SEQUENCE_ERASE = define_operator("sequence_erase(Tensor sequence, Scalar position) -> Tensor")
SEQUENCE_AT = define_operator("sequence_at(Tensor sequence, Scalar position) -> Tensor")
SEQUENCE_LENGTH = define_operator("sequence_length(Tensor sequence) -> Tensor")
SEQUENCE_CONCAT = define_operator(
    "sequence_concat(Tensor sequence, int dim, bool new_dim) -> Tensor"
)

ITEMS_STACK = define_operator("items_stack(Tensor[] items) -> Tensor")
"""A list of tensors of one shape is one tensor, the items along its first dim."""
ITEMS_JOIN = define_operator("items_join(Tensor[] stacked) -> Tensor")
ITEMS_REVERSE = define_operator("items_reverse(Tensor stacked) -> Tensor")
ITEMS_SET = define_operator("items_set(Tensor stacked, Tensor item, Scalar position) -> Tensor")

TAKES_ITEMS = frozenset({SEQUENCE, SEQUENCE_INSERT, ITEMS_STACK, ITEMS_JOIN, ITEMS_SET})
"""Operators whose result holds their arguments."""
SHOWS_ITEMS = frozenset(
    {SEQUENCE_UNSTACK, SEQUENCE_SPLIT, SEQUENCE_ERASE, SEQUENCE_AT, ITEMS_REVERSE}
)
"""Operators whose result shares memory with the items of their argument."""
