"""Indexing without exception: each form read, and written in every way, by both captures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check

torch.manual_seed(0)
X = torch.randn(4, 5, 6)
I = torch.tensor([3, 0, -2])  # noqa: E741
J = torch.tensor([-1, 2, 0])
GRID = torch.tensor([[1, -1], [2, 0]])
M = torch.tensor([True, False, True, True])
N = torch.rand(5, 6) > 0.4
ZERO_D = torch.tensor(-2)

Form = Callable[..., Any]
FORMS: dict[str, Form] = {
    # What older exporters list as unsupported.
    "negative_values": lambda i, j, g, m, n, z: (g, torch.tensor([-2, 3])),
    "several_of_rank_2": lambda i, j, g, m, n, z: (g, g.flip(0)),
    "rank_2_beside_rank_1": lambda i, j, g, m, n, z: (g, i[:2]),
    "not_consecutive": lambda i, j, g, m, n, z: (i, slice(None), j),
    "beside_a_slice": lambda i, j, g, m, n, z: (g, slice(1, 3)),
    # Numbers, slices, None and Ellipsis around tensors.
    "number_between": lambda i, j, g, m, n, z: (i, 2, j),
    "number_before": lambda i, j, g, m, n, z: (1, i),
    "negative_number": lambda i, j, g, m, n, z: (i, -1),
    "stepped_slice": lambda i, j, g, m, n, z: (slice(None, None, 2), j),
    "slices_on_both_sides": lambda i, j, g, m, n, z: (slice(1, 3), j, slice(-4, -1)),
    "none_before": lambda i, j, g, m, n, z: (None, i),
    "none_between": lambda i, j, g, m, n, z: (i, None, j),
    "none_behind": lambda i, j, g, m, n, z: (i, j, None),
    "ellipsis_before": lambda i, j, g, m, n, z: (..., j),
    "ellipsis_between": lambda i, j, g, m, n, z: (i, ..., j),
    "ellipsis_behind": lambda i, j, g, m, n, z: (i, ...),
    "ellipsis_of_nothing": lambda i, j, g, m, n, z: (i, ..., j, i),
    "ellipsis_and_none": lambda i, j, g, m, n, z: (None, ..., j, slice(2)),
    "list_of_numbers": lambda i, j, g, m, n, z: ([0, -1], slice(None), [1, 2]),
    "all_of_them": lambda i, j, g, m, n, z: (slice(1, 4), None, g, ..., 0),
    # Tensors without dims or elements.
    "zero_d": lambda i, j, g, m, n, z: (z,),
    "zero_d_inside": lambda i, j, g, m, n, z: (slice(None), z, slice(1, 3)),
    "zero_d_beside_a_tensor": lambda i, j, g, m, n, z: (z, i),
    "zero_d_apart": lambda i, j, g, m, n, z: (z, slice(None), i),
    "all_zero_d": lambda i, j, g, m, n, z: (z, z, z),
    "empty": lambda i, j, g, m, n, z: (i[:0],),
    "empty_inside": lambda i, j, g, m, n, z: (slice(None), i[:0]),
    "empty_beside_another": lambda i, j, g, m, n, z: (i[:0], j[:0]),
    "empty_list": lambda i, j, g, m, n, z: ([],),
    # Masks.
    "mask": lambda i, j, g, m, n, z: (m,),
    "mask_of_two_dims": lambda i, j, g, m, n, z: (slice(None), n),
    "mask_beside_a_slice": lambda i, j, g, m, n, z: (m, slice(1, 4)),
    "mask_beside_an_index": lambda i, j, g, m, n, z: (m, i),
    "mask_apart_from_an_index": lambda i, j, g, m, n, z: (m, slice(None), i),
    "mask_beside_a_number": lambda i, j, g, m, n, z: (m, 2),
    "mask_behind_a_zero_d": lambda i, j, g, m, n, z: (z, n),
    "mask_and_none": lambda i, j, g, m, n, z: (None, m, slice(None), None),
    "mask_and_ellipsis": lambda i, j, g, m, n, z: (m, ..., j),
    "mask_of_a_slice": lambda i, j, g, m, n, z: (slice(1, 4), m.repeat(2)[:5]),
    "two_masks": lambda i, j, g, m, n, z: (m, torch.tensor([True, True, False, False, True])),
    "mask_of_nothing": lambda i, j, g, m, n, z: (m & ~m,),
    # Python bools are a new dim that is kept or emptied.
    "true": lambda i, j, g, m, n, z: (True,),
    "false": lambda i, j, g, m, n, z: (False,),
    "true_beside_an_index": lambda i, j, g, m, n, z: (True, i),
    "true_inside": lambda i, j, g, m, n, z: (slice(1, 3), True, j),
    # No index at all.
    "ellipsis_alone": lambda i, j, g, m, n, z: (...,),
    "slice_alone": lambda i, j, g, m, n, z: (slice(None, -1),),
    "none_alone": lambda i, j, g, m, n, z: (None,),
    "numbers": lambda i, j, g, m, n, z: (1, -2, 3),
    "nothing": lambda i, j, g, m, n, z: (),
}
INDICES = (I, J, GRID, M, N, ZERO_D)


@pytest.mark.parametrize("name", FORMS)
def test_read(name: str) -> None:
    form = FORMS[name]
    check(lambda x, *indices: x[form(*indices)], X, *INDICES, opsets=(18,))


def _written(x: torch.Tensor, at: Any, value: Any) -> torch.Tensor:
    x = x.clone()
    x[at] = value
    return x


def _added(x: torch.Tensor, at: Any, value: Any) -> torch.Tensor:
    x = x.clone()
    x[at] += value
    return x


@pytest.mark.parametrize("name", FORMS)
def test_write(name: str) -> None:
    """A number, a tensor that is broadcast, one of the whole shape, and a sum in place."""
    form = FORMS[name]
    shape = X[form(*INDICES)].shape
    whole = torch.randn(shape)
    # Of the last dim alone: PyTorch broadcasts what is assigned.
    short = torch.randn(shape[-1:])

    def model(
        x: torch.Tensor, short: torch.Tensor, whole: torch.Tensor, *indices: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        at = form(*indices)
        return (
            _written(x, at, 7.5),
            _written(x, at, short),
            _written(x, at, whole),
            _added(x, at, short),
        )

    check(model, X, short, whole, *INDICES, opsets=(18,))


ACCUMULATED = {
    "repeated": ((GRID[:, :1] * 0, None, J), ()),
    "rank_2": ((GRID, GRID), (2, 6)),
    "apart": ((I, None, J), (3, 5)),
    "negative": ((torch.tensor([-1, -1, 3]),), (5, 6)),
    "empty": ((I[:0],), (0, 5, 6)),
    "mask_and_index": ((M, torch.tensor([1, 1, 1])), (6,)),
}


@pytest.mark.parametrize("name", ACCUMULATED)
def test_accumulate(name: str) -> None:
    indices, shape = ACCUMULATED[name]
    check(
        lambda x, v: (
            torch.index_put(x, indices, v, accumulate=True)
            if None not in indices
            else torch.ops.aten.index_put(x, list(indices), v, True)
        ),
        X,
        torch.randn(shape),
        opsets=(18,),
    )


BYTES = torch.tensor([1, 0, 2, 1], dtype=torch.uint8)
READ_BY_BYTES: dict[str, tuple[Form, torch.Tensor]] = {
    "first": (lambda x, m: x[m], BYTES),
    "behind": (lambda x, m: x[:, m], torch.tensor([0, 1, 1, 0, 3], dtype=torch.uint8)),
    "two_dims": (lambda x, m: x[:, m], N.to(torch.uint8)),
    "beside_numbers": (lambda x, m: x[m, I], BYTES),
    "no_dims": (lambda x, m: x[m], torch.tensor(1, dtype=torch.uint8)),
}


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("name", READ_BY_BYTES)
def test_masks_of_bytes_are_read(name: str) -> None:
    function, mask = READ_BY_BYTES[name]
    others = [(X, mask * 2)] if name == "beside_numbers" else [(X, 1 - mask.clamp(max=1))]
    check(function, X, mask, others=others)


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
def test_masks_of_bytes_are_written() -> None:
    def write(x: torch.Tensor, mask: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x[mask] = values
        return x

    check(write, X, BYTES, torch.randn(3, 5, 6))
    check(write, X, BYTES, torch.randn(5, 6), others=[(X, 1 - BYTES.clamp(max=1), X[0])])
