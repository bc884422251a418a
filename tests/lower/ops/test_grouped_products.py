"""Products of groups of rows, columns or summands, as mixtures of experts take them."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check


def rand(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape))).to(dtype)


def ends(*places: int) -> torch.Tensor:
    return torch.tensor(places, dtype=torch.int32)


def grouped(left: torch.Tensor, right: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    return torch._grouped_mm(left, right, offs=offs)


# What torch.export takes is bfloat16 alone.
DTYPES = [(torch.float32, ["trace"]), (torch.bfloat16, ["trace", "export"])]


@pytest.mark.parametrize(("dtype", "captures"), DTYPES)
def test_rows_in_groups(dtype: torch.dtype, captures: list[str]) -> None:
    x, experts = rand(16, 8, dtype=dtype), rand(3, 8, 16, dtype=dtype)
    others = [(x, experts, ends(*e)) for e in ((0, 5, 16), (7, 7, 16), (16, 16, 16))]
    check(grouped, x, experts, ends(2, 4, 16), others=others, captures=captures)


@pytest.mark.parametrize(("dtype", "captures"), DTYPES)
def test_columns_in_groups(dtype: torch.dtype, captures: list[str]) -> None:
    x, experts = rand(8, 24, dtype=dtype), rand(3, 16, 8, dtype=dtype)
    others = [(experts, x, ends(0, 8, 24))]
    check(grouped, experts, x, ends(8, 16, 24), others=others, captures=captures)


@pytest.mark.parametrize(("dtype", "captures"), DTYPES)
def test_sums_in_groups(dtype: torch.dtype, captures: list[str]) -> None:
    left, right = rand(16, 8, dtype=dtype), rand(8, 16, dtype=dtype)
    others = [(left, right, ends(0, 5, 8)), (left, right, ends(2, 2, 6))]
    check(grouped, left, right, ends(2, 4, 8), others=others, captures=captures)


@pytest.mark.parametrize(("dtype", "captures"), DTYPES)
def test_a_batch_of_products(dtype: torch.dtype, captures: list[str]) -> None:
    left, right = rand(3, 8, 16, dtype=dtype), rand(3, 16, 8, dtype=dtype)
    check(torch._grouped_mm, left, right, captures=captures)


def test_any_number_of_rows() -> None:
    experts = rand(3, 8, 16)
    others = [(rand(n, 8), experts, ends(0, n // 2, n)) for n in (1, 9, 16)]
    check(grouped, rand(5, 8), experts, ends(1, 3, 5), dynamic={0: [0]}, others=others,
          captures=["trace"])  # fmt: skip


def test_rows_behind_the_last_group_are_zero() -> None:
    x, experts = rand(16, 8), rand(3, 8, 16)
    program = check(grouped, x, experts, ends(2, 4, 16), captures=["trace"], opsets=(20,))
    drawn = program(x, experts, ends(2, 4, 9))
    torch.testing.assert_close(drawn[:9], grouped(x, experts, ends(2, 4, 9))[:9])
    assert not drawn[9:].any()
