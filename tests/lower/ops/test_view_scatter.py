"""Writes to views, as the *_scatter operators and as in-place assignments."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check

torch.manual_seed(0)
X = torch.randn(2, 6, 4)
OTHER = torch.randn(3, 6, 9)
DYNAMIC = {0: [0, 2]}

SCATTERS = {
    "select_first_dim": lambda x: torch.select_scatter(x, x[0] * 2, 0, 1),
    "select_first_dim_negative": lambda x: torch.select_scatter(x, x[0] * 2, 0, -1),
    "select_inside": lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, 3),
    "select_inside_ends": lambda x: (
        torch.select_scatter(x, x[:, 1] * 2, 1, 0),
        torch.select_scatter(x, x[:, 1] * 2, 1, 5),
    ),
    "select_dynamic_dim": lambda x: torch.select_scatter(x, x[..., 0] * 2, 2, 3),
    "select_negative": lambda x: (
        torch.select_scatter(x, x[..., 0] * 2, -1, -1),
        torch.select_scatter(x, x[..., 0] * 2, 2, -4),
    ),
    "select_symbolic": lambda x: torch.select_scatter(x, x[..., 0] * 2, 2, x.shape[2] // 2),
    "select_symbolic_first": lambda x: torch.select_scatter(x, x[0] * 2, 0, x.shape[0] - 1),
    "select_single": lambda x: torch.select_scatter(x[:, :1], x[:, 1], 1, 0),
    "slice": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, 1, 3),
    "slice_to_end": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, 4),
    "slice_from_start": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, None, 2),
    "slice_whole": lambda x: torch.slice_scatter(x, x * 2, 1),
    "slice_beyond": lambda x: torch.slice_scatter(x, x[:, 2:] * 2, 1, 2, 99),
    "slice_negative": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, -3, -1),
    "slice_dynamic": lambda x: torch.slice_scatter(x, x[..., :2] * 2, 2, 1, 3),
    "slice_dynamic_to_end": lambda x: torch.slice_scatter(x, x[..., 1:] * 2, 2, 1),
    "slice_dynamic_negative": lambda x: torch.slice_scatter(x, x[..., :2] * 2, 2, -3, -1),
    "slice_dynamic_far_negative": lambda x: torch.slice_scatter(x, x[..., :-1] * 2, 2, -99, -1),
    "slice_symbolic": lambda x: torch.slice_scatter(
        x, x[..., : x.shape[2] // 2] * 2, 2, 1, 1 + x.shape[2] // 2
    ),
    "slice_symbolic_start": lambda x: torch.slice_scatter(
        x, x[..., : x.shape[2] - x.shape[2] // 2] * 2, 2, x.shape[2] // 2
    ),
    "slice_empty": lambda x: torch.slice_scatter(x, x[:, :0], 1, 4, 2),
    "slice_step": lambda x: torch.slice_scatter(x, x[:, :3] * 2, 1, 0, 6, 2),
    "slice_step_offset": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, 1, 6, 3),
    "slice_step_negative": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, -4, -1, 2),
    "slice_step_dynamic": lambda x: torch.slice_scatter(x, x[..., 1::2] * 2, 2, 1, None, 2),
    "slice_step_first_dim": lambda x: torch.slice_scatter(x, x[::2] * 2, 0, 0, None, 2),
    "diagonal": lambda x: torch.diagonal_scatter(x, x.diagonal() * 2),
    "diagonal_offset": lambda x: torch.diagonal_scatter(x, x.diagonal(2, 2, 1) * 2, 2, 2, 1),
    "diagonal_below": lambda x: torch.diagonal_scatter(x, x.diagonal(-1, 0, 1) * 2, -1, 0, 1),
}


@pytest.mark.parametrize("name", SCATTERS)
def test_scatter(name: str) -> None:
    check(SCATTERS[name], X)


FIXES_A_SIZE = {"slice_step_first_dim", "diagonal_below"}
"""PyTorch's own shape rules do, for a dim of size 2."""


@pytest.mark.parametrize("name", [n for n in SCATTERS if n not in FIXES_A_SIZE])
def test_scatter_dynamic(name: str) -> None:
    check(SCATTERS[name], X, dynamic=DYNAMIC, others=[(OTHER,)])


def test_scatter_far_negative_start_on_a_short_dim() -> None:
    check(
        lambda x: torch.slice_scatter(x, x[:, :-1] * 2, 1, -5, -1),
        torch.randn(2, 3),
        dynamic={0: [1]},
        others=[(torch.randn(2, 5),)],
    )


SHORT = {
    "end": lambda x: torch.slice_scatter(x, x[:, 1:5] * 2, 1, 1, 5),
    "negative_start": lambda x: torch.slice_scatter(x, x[:, -4:] * 2, 1, -4),
    "both_negative": lambda x: torch.slice_scatter(x, x[:, -4:-1] * 2, 1, -4, -1),
    "step": lambda x: torch.slice_scatter(x, x[:, 1:6:2] * 2, 1, 1, 6, 2),
}


@pytest.mark.parametrize("name", SHORT)
def test_scatter_on_a_dim_that_is_shorter_than_the_slice(name: str) -> None:
    others = [(torch.randn(2, n),) for n in (2, 3, 5, 9)]
    check(SHORT[name], torch.randn(2, 7), dynamic={0: [1]}, others=others)


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64, torch.uint8, torch.bool])
def test_dtypes(dtype: torch.dtype) -> None:
    check(
        lambda x: (
            torch.select_scatter(x, x[:, 0], 1, 3),
            torch.select_scatter(x, x[0], 0, 1),
            torch.slice_scatter(x, x[:, :2], 1, 2, 4),
            torch.slice_scatter(x, x[:, :3], 1, 0, 6, 2),
            torch.diagonal_scatter(x, x.diagonal().flip(-1)),
        ),
        (X * 2).to(dtype),
    )


def _written(x: torch.Tensor, write) -> torch.Tensor:
    y = x.clone()
    write(y)
    return y


def _set(*at, value=lambda y: -1.0):
    def write(y):
        y[at] = value(y)

    return write


ALL = slice(None)
ASSIGNMENTS = {
    "number": _set(0),
    "inside": _set(ALL, 2),
    "slice": _set(ALL, slice(1, 3), value=lambda y: y[:, 3:5] * 2),
    "slice_of_slice": lambda y: y[:, 1:5][:, ::2].fill_(3.0),
    "step": _set(..., slice(1, None, 2)),
    "dynamic_slice": _set(..., slice(-2, None), value=lambda y: y[..., :2]),
    "transposed": lambda y: y.transpose(1, 2)[:, 1].zero_(),
    "diagonal": lambda y: y.diagonal(dim1=0, dim2=1).add_(10),
    "row_of_matrix": lambda y: y[0][2].mul_(3),
    "view": lambda y: y.view(y.shape[0], -1)[:, 0].copy_(y[:, 1, 1]),
    "mask": lambda y: y.masked_fill_(y > 0, 2.0),
    "mask_assignment": lambda y: y.__setitem__(y > 0.5, 0.0),
    "chained": lambda y: (y[:, 0].add_(1), y[:, :, 1].mul_(2), y[:, 0, 1].sub_(5)),
    "loop": lambda y: [y[:, i].add_(y[:, i - 1]) for i in range(1, 4)],
}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_assignment(name: str) -> None:
    check(lambda x: _written(x, ASSIGNMENTS[name]), X, dynamic={0: [0, 2]}, others=[(OTHER,)])
