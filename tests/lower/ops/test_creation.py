"""Created tensors against eager PyTorch: fixed, dynamic and computed sizes, inferred dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.lower.ops.harness import CAPTURES, check

X = torch.randn(3, 4)
LARGE = torch.randn(40, 60)

CASES: list[tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]]] = [
    ("zeros", lambda x: x + torch.zeros(3, 4), (X,)),
    ("ones_dtype", lambda x: (torch.ones(2, dtype=torch.int32), x), (X,)),
    (
        "full",
        lambda x: (torch.full((2, 2), 7), torch.full((2,), 0.5), torch.full((1,), True), x),
        (X,),
    ),
    ("large", lambda x: (torch.zeros(50, 60), torch.full((2000,), 3, dtype=torch.uint8), x), (X,)),
    ("likes", lambda x: (torch.zeros_like(x), torch.ones_like(x, dtype=torch.int64)), (LARGE,)),
    (
        "full_like",
        lambda x: (torch.full_like(x, 2.5), torch.full_like(x, 1, dtype=torch.bool)),
        (X,),
    ),
    ("full_like_truncates", lambda x: torch.full_like(x, 2.7), (torch.arange(3),)),
    ("new", lambda x: (x.new_zeros(2), x.new_ones(2, 3), x.new_full((2,), 5)), (torch.arange(3),)),
    ("new_dtype", lambda x: x.new_zeros((2, 2), dtype=torch.float16), (X,)),
    ("empty_filled", lambda x: torch.empty_like(x).fill_(3) + torch.empty(3, 4).zero_(), (X,)),
    ("new_empty", lambda x: x.new_empty(2, 2).fill_(1), (X,)),
    ("scalar_tensor", lambda x: x * torch.scalar_tensor(3), (torch.arange(3),)),
    ("tensor", lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]), (X,)),
    ("arange", lambda x: (torch.arange(5), torch.arange(2, 9, 3), torch.arange(5, 0, -2), x), (X,)),
    ("arange_floats", lambda x: (torch.arange(0, 1, 0.1), torch.arange(2.5), x), (X,)),
    ("arange_dtype", lambda x: (torch.arange(5, dtype=torch.float32), x), (X,)),
    ("arange_long", lambda x: (torch.arange(3000), torch.arange(0, 300, 0.1), x), (X,)),
    (
        "arange_long_typed",
        lambda x: (
            torch.arange(3000, dtype=torch.float32),
            torch.arange(6000, dtype=torch.int32),
            torch.arange(0.5, 3000.5, 1.5, dtype=torch.int64),
            x,
        ),
        (X,),
    ),
    ("linspace", lambda x: (torch.linspace(-1, 1, 7), torch.linspace(0, 5, 1), x), (X,)),
    ("linspace_long", lambda x: (torch.linspace(-1, 1, 3001), x), (X,)),
    (
        "linspace_tensors",
        lambda x, y: torch.linspace(x, y, 9),
        (torch.tensor(1.0), torch.tensor(4.0)),
    ),
    (
        "linspace_tensor_scalar",
        lambda x: (torch.linspace(x, 3, 4), torch.linspace(0, x, 1)),
        (torch.tensor(1.0),),
    ),
    (
        "logspace",
        lambda x: (torch.logspace(-2, 2, 5), torch.logspace(0, 3, 2000, base=2.0), x),
        (X,),
    ),
    ("logspace_tensors", lambda x: torch.logspace(x, 2.0, 4), (torch.tensor(1.0),)),
    ("eye", lambda x: (torch.eye(3), torch.eye(2, 5, dtype=torch.int64), x), (X,)),
    ("eye_large", lambda x: (torch.eye(50), torch.eye(70, 80, dtype=torch.bool), x), (X,)),
    ("tril", lambda x: (x.tril(), x.tril(1), x.tril(-2), x.triu(), x.triu(2), x.triu(-1)), (X,)),
    ("tril_ints", lambda x: (x.tril(), x.triu(1)), (torch.arange(18).reshape(2, 3, 3),)),
    ("tril_bools", lambda x: x.tril(), (torch.ones(4, 4, dtype=torch.bool),)),
    ("triu_bytes", lambda x: x.triu(1), (torch.ones(4, 4, dtype=torch.uint8),)),
    ("tril_half", lambda x: x.tril(), (X.half(),)),
    ("indices", lambda x: (torch.tril_indices(40, 40, -1), torch.triu_indices(3, 5, 1), x), (X,)),
    (
        "windows",
        lambda x: (
            torch.hann_window(2000),
            torch.hamming_window(2000, periodic=False, alpha=0.5, beta=0.4),
            torch.blackman_window(2000),
            torch.bartlett_window(2000),
            torch.kaiser_window(2000, True, 9.0),
            x,
        ),
        (X,),
    ),
]


NOT_FOR_THE_TRACER = {"full"}
"""torch.jit.trace itself fails on these."""


@pytest.mark.parametrize("name, function, args", CASES, ids=[c[0] for c in CASES])
def test_agrees_with_eager(
    name: str, function: Callable[..., Any], args: tuple[torch.Tensor, ...]
) -> None:
    check(function, *args, captures=("export",) if name in NOT_FOR_THE_TRACER else CAPTURES)


DYNAMIC: dict[str, Callable[..., Any]] = {
    "zeros": lambda x: torch.zeros(x.shape[0], 2, x.shape[1] + 1),
    "full_of_size": lambda x: torch.full((2, x.shape[0]), x.shape[1]),
    "likes": lambda x: (torch.ones_like(x), torch.full_like(x, 3, dtype=torch.int64)),
    "new": lambda x: x.new_zeros(x.shape[1], dtype=torch.bool),
    "arange": lambda x: torch.arange(x.shape[0]),
    "arange_from_to": lambda x: torch.arange(1, x.shape[1] * 2 + 1, 2),
    "arange_float": lambda x: torch.arange(x.shape[0], dtype=torch.float32) / 2,
    "arange_fractions": lambda x: torch.arange(0, x.shape[1], 0.25),
    "arange_down": lambda x: torch.arange(x.shape[0] - 1, -1, -1),
    "causal_mask": lambda x: torch.full((x.shape[0], x.shape[0]), -1e9).triu(1),
    "bool_mask": lambda x: torch.ones(x.shape[0], x.shape[1], dtype=torch.bool).tril(),
    "triangle_of_size": lambda x: x.tril(x.shape[1] - x.shape[0]),
    "eye": lambda x: (torch.eye(x.shape[0]), torch.eye(x.shape[0], x.shape[1], dtype=torch.int64)),
    "scalar_tensor": lambda x: torch.scalar_tensor(x.shape[0]) * x,
    "scalar_tensor_int": lambda x: torch.scalar_tensor(x.shape[0], dtype=torch.int64),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_sizes(name: str) -> None:
    others = [(torch.randn(6, 9),), (torch.randn(5, 2),)]
    check(
        lambda x: (DYNAMIC[name](x), x + 1), torch.randn(3, 4), dynamic={0: [0, 1]}, others=others
    )


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize(
    "length",
    [
        lambda n: n * 0.1 * 3,
        lambda n: n * 3 * 0.1,
        lambda n: (n - 1) * 0.1 + 0.2,
        lambda n: 0.1 + n * 0.3 - 0.1,
        lambda n: n * 0.3,
        lambda n: n / 10 * 3,
    ],
)
def test_arange_to_a_float_of_several_steps(length: Callable[[Any], Any], capture: str) -> None:
    """Each step is rounded: 5 * 0.1 * 3 is 1.5, 5 * (0.1 * 3) is more."""
    check(
        lambda x: torch.arange(0, max(length(x.shape[0]), 0), 0.3) + x.sum() * 0,
        torch.rand(5, 3),
        dynamic={0: [0]},
        others=[(torch.rand(n, 3),) for n in (0, 1, 2, 3, 6, 7, 10, 11, 17)],
        captures=[capture],
        opsets=[20],
    )


RANGES: dict[str, Callable[..., Any]] = {
    "backwards": lambda x: torch.arange(x.shape[0] - 1, -1, -1),
    "backwards_to_zero": lambda x: torch.arange(x.shape[0], 0, -1),
    "in_steps_past_zero": lambda x: torch.arange(x.shape[0] * 2, -5, -3),
    "from_below_zero": lambda x: torch.arange(-x.shape[0], x.shape[0], 3),
    "of_a_computed_step": lambda x: torch.arange(0, x.shape[0], x.shape[0] // 2 + 1),
    "of_a_computed_step_backwards": lambda x: torch.arange(x.shape[0], -3, -(x.shape[0] // 2 + 1)),
    "of_a_dtype": lambda x: torch.arange(x.shape[0] - 1, -1, -1, dtype=torch.float32),
    # ONNX Runtime makes slices of these.
    "rows_backwards": lambda x: x[torch.arange(x.shape[0] - 1, -1, -1)],
    "rows_from_the_end": lambda x: x[torch.arange(-x.shape[0], 0)],
    "selected": lambda x: x.index_select(0, torch.arange(x.shape[0] - 1, -1, -1)),
    "embedded": lambda x: torch.nn.functional.embedding(torch.arange(x.shape[0] - 1, -1, -1), x),
    "behind_another_dim": lambda x: torch.stack([x, x * 2])[
        :, torch.arange(-x.shape[0], 0), torch.tensor([1])
    ],
    "copied": lambda x: x.index_copy(0, torch.arange(x.shape[0] - 1, -1, -1), x * 2),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges_that_go_below_zero(name: str) -> None:
    check(
        RANGES[name],
        torch.randn(3, 4),
        dynamic={0: [0]},
        others=[(torch.randn(n, 4),) for n in (0, 1, 2, 7)],
    )
