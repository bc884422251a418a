"""Reductions against eager PyTorch: dims, keepdim, dtypes, corrections, norms, empty and 0-d."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.ops.harness import check

X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
LARGER = torch.randn(5, 3, 6, generator=torch.Generator().manual_seed(1))
INTS = torch.tensor([[3, -1, 3], [0, 7, 7]])
BOOLS = torch.tensor([[True, False, True], [True, True, True]])
HOLES = torch.tensor([[1.0, math.nan, 2.0], [0.0, 4.0, math.nan]])
SCALAR = torch.tensor(-2.5)

SUMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "sum": lambda x: x.sum(),
    "sum_dim": lambda x: x.sum(1),
    "sum_dims_keep": lambda x: x.sum((0, -1), keepdim=True),
    "sum_no_dims": lambda x: torch.sum(x, dim=[]),
    "sum_dtype": lambda x: x.sum(-1, dtype=torch.float64),
    "sum_int_dtype": lambda x: x.sum(-1, dtype=torch.int32),
    "prod": lambda x: x.prod(),
    "prod_dim": lambda x: x.prod(-2, keepdim=True),
    "prod_dtype": lambda x: x.prod(0, dtype=torch.float64),
    "count_nonzero": lambda x: torch.count_nonzero(x),
    "count_nonzero_dim": lambda x: torch.count_nonzero(x, dim=-1),
    "count_nonzero_dims": lambda x: torch.count_nonzero(x, dim=(0, 1)),
    "nansum": lambda x: torch.nansum(x, dim=-1, keepdim=True),
    "any": lambda x: x.any(),
    "any_dim": lambda x: x.any(-1, keepdim=True),
    "any_dims": lambda x: x.any((0, 1)),
    "any_no_dims": lambda x: torch.any(x, dim=[]),
    "all": lambda x: x.all(),
    "all_dim": lambda x: x.all(0),
    "all_dims": lambda x: torch.all(x, dim=(0, -1), keepdim=True),
    "amax": lambda x: x.amax(),
    "amax_dims": lambda x: x.amax((0, -1), keepdim=True),
    "amin_dim": lambda x: x.amin(-1),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "max_dim": lambda x: x.max(-1),
    "min_dim_keep": lambda x: x.min(0, keepdim=True),
    "max_values_only": lambda x: x.max(1).values,
    "aminmax": lambda x: torch.aminmax(x),
    "aminmax_dim": lambda x: torch.aminmax(x, dim=-1, keepdim=True),
}
FLOATS: dict[str, Callable[[torch.Tensor], Any]] = {
    "mean": lambda x: x.mean(),
    "mean_dims": lambda x: x.mean((-1, 0), keepdim=True),
    "mean_dtype": lambda x: x.mean(1, dtype=torch.float64),
    "argmax": lambda x: x.argmax(),
    "argmax_dim": lambda x: x.argmax(-1, keepdim=True),
    "argmax_flat_keep": lambda x: x.argmax(keepdim=True),
    "argmin_dim": lambda x: x.argmin(0),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "logsumexp_dims": lambda x: torch.logsumexp(x, (0, 1), keepdim=True),
    "var": lambda x: x.var(),
    "var_biased": lambda x: x.var(unbiased=False),
    "var_dim": lambda x: x.var(-1, unbiased=True, keepdim=True),
    "var_biased_dim": lambda x: x.var((0, 1), unbiased=False),
    "var_correction": lambda x: torch.var(x, dim=1, correction=0.5),
    "std": lambda x: x.std(),
    "std_dim": lambda x: x.std(0),
    "std_correction": lambda x: torch.std(x, dim=(0, -1), correction=2, keepdim=True),
    "var_mean": lambda x: torch.var_mean(x, -1, keepdim=True),
    "std_mean": lambda x: torch.std_mean(x, dim=(0, 1), correction=0),
    "norm": lambda x: x.norm(),
    "norm_p1": lambda x: torch.ops.aten.norm.Scalar(x, 1),
    "norm_p_none": lambda x: torch.ops.aten.norm.ScalarOpt_dim(x, None, [1]),
    "norm_dtype": lambda x: torch.norm(x, p=3, dim=-1, dtype=torch.float64),
    "norm_all_dtype": lambda x: torch.ops.aten.norm.ScalarOpt_dtype(x, 2, dtype=torch.float64),
    "frobenius": lambda x: torch.ops.aten.frobenius_norm.dim(x, [0, 1], True),
    **{
        f"vector_norm_{p}": lambda x, p=p: torch.linalg.vector_norm(x, p, dim=(0, -1))
        for p in (0, 1, 2, 3, 0.5, -1, math.inf, -math.inf)
    },
    "vector_norm_keep": lambda x: torch.linalg.vector_norm(x, keepdim=True, dtype=torch.float64),
    "linalg_norm": lambda x: torch.linalg.norm(x),
    "matrix_norm_fro": lambda x: torch.linalg.matrix_norm(x, keepdim=True),
    "linalg_norm_ord": lambda x: torch.linalg.norm(x, 3, dim=1, dtype=torch.float64),
    "dist": lambda x: torch.dist(x, x * 2 + 1, 1.5),
}


@pytest.mark.parametrize("name", [*SUMS, *FLOATS])
def test_floats_at_another_size(name: str) -> None:
    check({**SUMS, **FLOATS}[name], X, dynamic={0: [0, 2]}, others=[(LARGER,)])


@pytest.mark.parametrize("name", [n for n in SUMS if n not in ("nansum",)])
def test_integers_and_bools(name: str) -> None:
    function = SUMS[name]
    check(lambda i, b: (function(i), function(b)), INTS, BOOLS)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int16, torch.uint8])
def test_dtypes(dtype: torch.dtype) -> None:
    def reductions(x: torch.Tensor) -> list[torch.Tensor]:
        found = [x.sum(1), x.prod(0), x.amax(1), *x.max(1), x.any(), x.all(0), x.argmin()]
        if x.is_floating_point():
            found += [x.mean(1), x.var(1), x.norm(dim=1), torch.logsumexp(x, 1)]
        return found

    check(reductions, (X[0] * 3).to(dtype) if dtype != torch.uint8 else INTS.abs().to(dtype))


def test_half_precision_accumulates_in_float32() -> None:
    large = torch.full((4, 5000), 30.0, dtype=torch.float16)
    check(lambda x: (x.mean(1), x.norm(dim=1), x.std(1)), large)


def test_scalars() -> None:
    def reductions(x: torch.Tensor) -> list[torch.Tensor]:
        return [
            x.sum(0), x.mean(-1), x.prod(), x.amax(), *x.max(0), x.argmax(), x.argmin(0),
            x.any(0), x.all(), x.norm(), torch.logsumexp(x, 0), x.var(0, unbiased=False),
            x.sum(0, keepdim=True), torch.linalg.vector_norm(x, 0),
        ]  # fmt: skip

    check(reductions, SCALAR)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_empty() -> None:
    def reductions(x: torch.Tensor) -> list[torch.Tensor]:
        return [
            x.sum(1),
            x.prod(1),
            x.mean(1),
            x.any(1),
            x.all(1),
            x.sum(),
            x.any(),
            x.norm(dim=1),
            *torch.var_mean(x, 1, correction=0),
        ]

    check(reductions, torch.zeros(2, 0))


@pytest.mark.filterwarnings("ignore:var.*degrees of freedom")
def test_moments_of_a_dim_that_becomes_empty() -> None:
    others = [(torch.randn(n, 2),) for n in (0, 1, 5)]
    check(
        lambda x: (x.mean(), x.mean(0), x.half().mean(0), x.mean(1), x.var(0, correction=0)),
        torch.randn(3, 2),
        dynamic={0: [0]},
        others=others,
    )


def test_tests_of_a_dim_that_becomes_empty() -> None:
    def tests(x: torch.Tensor) -> list[torch.Tensor]:
        return [x.any(0), x.all(0), x.any(), x.all()]

    check(tests, X, dynamic={0: [0]}, others=[(X[:0],)])


def test_nan() -> None:
    check(lambda x: (x.nansum(), x.nansum(1), torch.nanmean(x, 1), x.nanmean()), HOLES)


def test_ties_give_the_first_index() -> None:
    tied = torch.tensor([[1.0, 3, 3, 1], [2, 2, 0, 0]])
    check(lambda x: (x.argmax(1), x.argmin(1), x.max(1), x.min(1), x.argmax()), tied)


@pytest.mark.parametrize("order", [1, -1, math.inf, -math.inf, "fro"])
def test_matrix_norms(order: float | str) -> None:
    def norms(x: torch.Tensor) -> list[torch.Tensor]:
        return [
            torch.linalg.matrix_norm(x, order, keepdim=True),
            torch.linalg.norm(x, order, dim=(2, 0)),
        ]

    check(norms, X)  # PyTorch itself fixes the sizes it infers these norms for


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_degrees_of_freedom_below_one() -> None:
    check(lambda x: (x.var(0), x.var(0, correction=2)), torch.tensor([[1.0, 2.0]]))


def test_infinities_in_logsumexp() -> None:
    rows = torch.tensor([[-math.inf, -math.inf], [math.inf, 1.0], [900.0, 900.0]])
    check(lambda x: (torch.logsumexp(x, 1), torch.logsumexp(x.int().clamp(0, 1), 0)), rows[1:])
    check(lambda x: torch.logsumexp(x, 1), rows)


def test_elementwise_max_and_min_of_mixed_dtypes() -> None:
    def extremes(x: torch.Tensor, i: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        return [torch.max(x, i), torch.min(i, x), torch.max(i, i * -1), torch.max(b, ~b),
                torch.min(b, ~b), torch.max(i.short(), i.short().neg())]  # fmt: skip

    check(extremes, X[0, :2, :3], INTS, BOOLS)


LARGE = torch.tensor([[2**53 + 1, 2**62, 3], [-2, 2**62, 2**62], [2**53 + 1, 0, 5]])


@pytest.mark.parametrize("reduce", [torch.sum, torch.prod])
@pytest.mark.parametrize("dims", [(), (0,), (1,), (1, True)], ids=str)
def test_large_integers_are_exact_and_wrap(
    reduce: Callable[..., torch.Tensor], dims: tuple[Any, ...]
) -> None:
    others = [(LARGE[:2, 1:],), (LARGE[:, :0],), (LARGE[:0],)]
    check(lambda x: reduce(x, *dims), LARGE)
    check(lambda x: reduce(x, *dims), LARGE, dynamic={0: [0, 1]}, others=others)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (1, 3)], ids=str)
def test_sums_of_large_integers_over_any_dims(dims: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-(2**62), 2**62, (2, 3, 4, 2), generator=generator)
    check(lambda x: x.sum(dims), x, captures=["trace"])
    others = [(x[:1, :, :, :1],), (x[:0],)]
    sums = check(lambda x: x.sum(dims, True), x, dynamic={0: [0, 3]}, others=others, opsets=[20])
    assert "MatMul" in {node.op_type for node in sums.model.graph}


def test_sums_in_int32_wrap() -> None:
    x = torch.full((2, 3), 2**31 - 1, dtype=torch.int32)
    check(lambda x: x.sum(-1, dtype=torch.int32), x)
    check(lambda x: x.prod(-1, dtype=torch.int32), x)


def test_products_of_small_types_are_exact() -> None:
    check(lambda x: x.prod(-1), torch.full((1, 9), -32767, dtype=torch.int16))
    check(lambda x: x.prod(), torch.full((11,), 251, dtype=torch.uint8))


def test_the_large_integers_that_a_mask_keeps() -> None:
    check(lambda x: (x[x > 0].sum(), x[x > 0].prod()), LARGE, opsets=[20])


@pytest.mark.parametrize(
    "count",
    [
        lambda x: (x > 1).sum(-1),
        lambda x: (x > 1).long().sum(),
        lambda x: x.to(torch.int16).unsqueeze(0).sum((0, 1)),
    ],
)
def test_sums_that_stay_small_are_one_node(count: Callable[[torch.Tensor], Any]) -> None:
    program = check(count, INTS, dynamic={0: [0]})
    types = [node.op_type for node in program.model.graph]
    assert "ReduceSum" in types
    assert "MatMul" not in types
