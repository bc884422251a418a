"""Type promotion equals PyTorch's, for every pair of dtypes, ranks and Python scalars."""

from __future__ import annotations

import itertools

import onnx_ir as ir
import pytest
import sympy
import torch

from sardonyx.lower import type_promotion
from sardonyx.lower.values import Tensor

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
]  # fmt: skip
SCALARS = [True, 2, 1.5, 1j]


def operand(dtype: torch.dtype, rank: int) -> Tensor:
    return Tensor(ir.Value(name="x"), dtype, (2,) * rank)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(DTYPES, DTYPES)), ids=str)
def test_two_tensors(left: torch.dtype, right: torch.dtype) -> None:
    for left_rank, right_rank in itertools.product((0, 2), (0, 2)):
        expected = torch.result_type(
            torch.empty((2,) * left_rank, dtype=left), torch.empty((2,) * right_rank, dtype=right)
        )
        found = type_promotion.result_dtype(operand(left, left_rank), operand(right, right_rank))
        assert found == expected, (left_rank, right_rank)


@pytest.mark.parametrize(("dtype", "scalar"), list(itertools.product(DTYPES, SCALARS)), ids=str)
def test_a_tensor_and_a_scalar(dtype: torch.dtype, scalar: complex) -> None:
    for rank in (0, 1):
        expected = torch.result_type(torch.empty((2,) * rank, dtype=dtype), scalar)
        assert type_promotion.result_dtype(operand(dtype, rank), scalar) == expected


def test_a_size_expression_counts_as_an_int() -> None:
    size = sympy.Symbol("s0", integer=True, positive=True) // 2
    assert type_promotion.result_dtype(operand(torch.uint8, 1), size) == torch.uint8
    assert type_promotion.result_dtype(size) == torch.int64


def test_three_operands_are_ranked_together() -> None:
    # Pairwise folding would let the 0-d float64 decide before the float32 with dims is seen.
    operands = [operand(torch.int64, 1), operand(torch.float64, 0), operand(torch.float32, 1)]
    assert type_promotion.result_dtype(*operands) == torch.float32
