"""Several tensors made one."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check

A = torch.arange(6.0).reshape(2, 3)
B = torch.arange(10.0, 18.0).reshape(2, 4)
INTS = torch.arange(6).reshape(2, 3)
LINE = torch.arange(3.0)

CASES = {
    "cat": (lambda a, b: torch.cat([a, b], 1), (A, B)),
    "cat_negative_dim": (lambda a, b: torch.concat([a, b, a], -1), (A, B)),
    "cat_one": (lambda a: torch.cat([a]), (A,)),
    "cat_promotes": (lambda a, b: torch.cat([a, b]), (A, INTS)),
    "cat_promotes_int_bool": (lambda a, b: torch.cat([a, b]), (INTS, INTS > 2)),
    "cat_half_and_double": (lambda a, b: torch.cat([a, b], 1), (A.half(), B.double())),
    "cat_empty_1d": (lambda a: torch.cat([a.new_zeros(0), a, a], 1), (A,)),
    "cat_only_empty": (lambda a: torch.cat([a[:0], a[:0]]), (LINE,)),
    "cat_empty_rows": (lambda a: torch.cat([a[:0], a]), (A,)),
    "stack": (lambda a: torch.stack([a, a * 2, a]), (A,)),
    "stack_dims": (lambda a: (torch.stack([a, a], 1), torch.stack([a, a], -1)), (A,)),
    "stack_one": (lambda a: torch.stack([a], 1), (A,)),
    "stack_scalars": (lambda a: torch.stack([a[0, 0], a[1, 2]]), (A,)),
    "stack_promotes": (lambda a, b: torch.stack([a, b]), (A, INTS)),
    "hstack": (lambda a, b: torch.hstack([a, b]), (A, B)),
    "hstack_1d": (lambda a: torch.hstack([a, a, a[0]]), (LINE,)),
    "vstack": (lambda a, b: torch.vstack([a, b]), (A, LINE)),
    "row_stack": (lambda a: torch.row_stack([a, a]), (LINE,)),
    "dstack": (lambda a: torch.dstack([a, a]), (A,)),
    "dstack_1d": (lambda a: torch.dstack([a, a]), (LINE,)),
    "column_stack": (lambda a, b: torch.column_stack([a, b]), (torch.ones(3, 2), LINE)),
    "block_diag": (lambda a, b: torch.block_diag(a, b, b[0], a[0, 0]), (A, B)),
    "block_diag_one": (lambda a: torch.block_diag(a), (LINE,)),
    "block_diag_promotes": (lambda a, b: torch.block_diag(a, b), (INTS, A)),
}


@pytest.mark.parametrize("name", CASES)
def test_join(name: str) -> None:
    function, args = CASES[name]
    check(function, *args)


DYNAMIC = {
    "cat": lambda x: torch.cat([x, x[:, :1]], 1),
    "cat_along_dynamic": lambda x: torch.cat([x, x + 1, x[:1]], 0),
    "stack": lambda x: torch.stack([x, x], 1),
    "block_diag": lambda x: torch.block_diag(x, x[0]),
    "column_stack": lambda x: torch.column_stack([x, x[:, 0]]),
    "hstack": lambda x: torch.hstack([x[0], x[:, 0]]),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_join_dynamic(name: str) -> None:
    check(DYNAMIC[name], A, dynamic={0: [0, 1]}, others=[(torch.randn(5, 4),)])


@pytest.mark.parametrize("dim", [0, 1])
def test_chunk_cat(dim: int) -> None:
    def rows(x: torch.Tensor) -> torch.Tensor:
        return torch._chunk_cat([x, x[..., :1]], dim, 4)

    check(rows, torch.rand(5, 7, 2))
