"""Strided views of memory."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from tests.lower.ops.harness import CAPTURES, check

X = torch.arange(24.0).reshape(4, 6)

VIEWS = {
    "rows": lambda x: x.as_strided((2, 6), (6, 1)),
    "offset": lambda x: x.as_strided((3, 2), (6, 2), 3),
    "overlapping": lambda x: x.as_strided((3, 4), (2, 1)),
    "repeated": lambda x: x.as_strided((2, 3), (0, 1)),
    "computed": lambda x: (x * 2).as_strided((5, 4), (4, 1), 1),
    "transposed": lambda x: x.t().as_strided((2, 3), (6, 1)),
    "transposed_and_computed": lambda x: (x.t() + 1).as_strided((4, 2), (2, 1), 5),
    "copied": lambda x: x.t().contiguous().as_strided((4, 2), (2, 1), 5),
    "part": lambda x: x[1:3].as_strided((2, 2), (3, 1)),
    "part_with_offset": lambda x: x[1:3].as_strided((2, 2), (3, 1), 7),
    "before_part": lambda x: x[1:3].as_strided((2, 2), (3, 1), 0),
    "part_of_rows": lambda x: x[:, 1:3].as_strided((2, 2), (3, 1)),
    "empty": lambda x: x.as_strided((0, 2), (1, 1)),
    "scatter": lambda x: torch.as_strided_scatter(x, x[:2, :3] * 2, (2, 3), (7, 2), 1),
    "scatter_transposed": lambda x: torch.as_strided_scatter(
        x.t(), x[:2, :3] * 2, (2, 3), (7, 2), 1
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_as_strided(name: str) -> None:
    # A static trace notes how inputs lie in memory, not how results do.
    check(VIEWS[name], X, captures=("export",) if name == "scatter_transposed" else CAPTURES)


def test_scatter_refused_for_dynamic_sizes() -> None:
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="sizes are dynamic"):
        check(
            lambda x: torch.as_strided_scatter(x, x[:2, :2], (2, 2), (3, 1)),
            X,
            dynamic={0: [0]},
            captures=("export",),
        )


def test_write_through_a_strided_view() -> None:
    def write(x):
        y = x.clone()
        y.as_strided((2, 3), (6, 2), 1).mul_(-1)
        return y

    check(write, X)
