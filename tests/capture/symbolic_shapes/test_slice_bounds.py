"""Slices with bounds that are computed from sizes, by both captures, against eager: a bound may
lie before or behind its dim for some of them."""

from __future__ import annotations

from collections import Counter

import pytest
import sympy
import torch
from torch.utils._sympy.functions import FloorDiv, Max, Mod

import sardonyx
from sardonyx.aten.shape_rules.slice_lengths import fitting, form_of_length

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
r = torch.randn


def check(model, args, others, capture, dynamic_axes):
    program = sardonyx.export(
        model, args, capture=capture, dynamic_axes=dynamic_axes, input_names=list(dynamic_axes)
    )
    for inputs in (args, *others):
        torch.testing.assert_close(program(*inputs), model(*inputs))
    return program


def written(x, *at):
    y = x.clone()
    y[at] = 3.0
    return y


def longer(x):
    return torch.cat([x[:2], x])


OF_THE_OWN_SIZE = {
    "without_last": lambda x: torch.ones_like(x[: x.shape[0] - 1]),
    "without_last_three": lambda x: torch.ones_like(x[: x.shape[0] - 3]),
    "last_three": lambda x: torch.ones_like(x[x.shape[0] - 3 :]),
    "at_least_one": lambda x: torch.ones(x[: max(x.shape[0] - 3, 1)].shape[0]),
    "inner": lambda x: torch.ones_like(longer(x)[1 : longer(x).shape[0] - 1]),
    "square": lambda x: torch.ones(x[: x.shape[0] ** 2 // 40].shape[0]),
    "half_to_double": lambda x: torch.ones_like(x[x.shape[0] // 2 : x.shape[0] * 2]),
    "from_the_end": lambda x: torch.ones_like(x[-(x.shape[0] // 2) :]),
    "step": lambda x: torch.ones_like(x[x.shape[0] // 3 : x.shape[0] - 1 : 2]),
    "write_last": lambda x: written(x, slice(x.shape[0] - 1, None)),
    "write_last_three": lambda x: written(x, slice(x.shape[0] - 3, None)),
    "write_behind_the_first": lambda x: written(x, slice(max(x.shape[0] - 3, 1), None)),
    "write_step": lambda x: written(x, slice(x.shape[0] - 3, None, 2)),
}


@BOTH
@pytest.mark.parametrize("name", OF_THE_OWN_SIZE)
def test_a_bound_computed_from_the_size_of_its_dim(name, capture):
    sizes = (0, 1, 2, 7, 50)
    others = [(r(n, 3),) for n in sizes]
    program = check(OF_THE_OWN_SIZE[name], (r(8, 3),), others, capture, {"x": {0: "n"}})
    assert program.notes == ()


OF_ANOTHER_SIZE = {
    "end": lambda x, y: torch.ones_like(x[: y.shape[0]]),
    "end_before": lambda x, y: torch.ones(x[: y.shape[0] - 1].shape[0]),
    "start": lambda x, y: torch.ones(x[y.shape[0] // 2 :].shape[0]),
    "both": lambda x, y: torch.ones_like(x[y.shape[0] // 2 : y.shape[0]]),
    "write": lambda x, y: written(x, slice(y.shape[0], None)),
    "write_to": lambda x, y: written(x, slice(None, y.shape[0] - 1)),
}


@BOTH
@pytest.mark.parametrize("name", OF_ANOTHER_SIZE)
def test_a_bound_computed_from_another_size(name, capture):
    sizes = [(2, 7), (7, 2), (0, 5), (5, 0), (0, 0), (1, 9), (1, 1)]
    others = [(r(n, 3), r(m)) for n, m in sizes]
    check(
        OF_ANOTHER_SIZE[name],
        (r(8, 3), r(5)),
        others,
        capture,
        {"x": {0: "n"}, "y": {0: "m"}},
    )


OF_A_FIXED_DIM = {
    "end": lambda x: torch.ones_like(x[:, : (x.shape[0] + 1) // 2]),
    "start": lambda x: torch.ones_like(x[:, x.shape[0] // 2 :]),
    "computed": lambda x: torch.ones_like(x.relu()[:, : x.shape[0]]),
    "transposed": lambda x: torch.ones_like(x.T[x.shape[0] - 2 : 1]),
    "write": lambda x: written(x, slice(None), slice(None, x.shape[0])),
}


@BOTH
@pytest.mark.parametrize("name", OF_A_FIXED_DIM)
def test_a_bound_in_a_dim_of_a_fixed_size(name, capture):
    others = [(r(n, 3),) for n in (0, 1, 2, 7)]
    check(OF_A_FIXED_DIM[name], (r(2, 3),), others, capture, {"x": {0: "n"}})


TABLE = r(16, 3)
MASK = torch.ones(16, 16).tril().bool()
PLAIN = {
    "half": lambda x: torch.ones_like(x[: x.shape[0] // 2]),
    "second_half": lambda x: torch.ones_like(x[x.shape[0] // 2 :]),
    "table": lambda x: TABLE[: x.shape[0]] + x,
    "mask": lambda x: (x @ x.T).where(MASK[: x.shape[0], : x.shape[0]], 0.0),
    "padded_and_cropped": lambda x: torch.ones_like(
        torch.nn.functional.pad(x, (0, 0, 0, -x.shape[0] % 8))[: x.shape[0]]
    ),
}


@BOTH
@pytest.mark.parametrize("name", PLAIN)
def test_a_bound_that_always_fits_costs_nothing(name, capture):
    others = [(r(n, 3),) for n in (1, 2, 7)]
    program = check(PLAIN[name], (r(8, 3),), others, capture, {"x": {0: "n"}})
    operators = Counter(node.op_type for node in program.model.graph)
    assert not operators.keys() & {"Min", "Max"}
    assert program.notes == ()


n, m = sympy.symbols("n m", integer=True, nonnegative=True)


@pytest.mark.parametrize(
    "size, start, end",
    [
        (n, None, FloorDiv(n, 2)),
        (n, FloorDiv(n, 3), n),
        (2 * n, n, None),
        (n + m, n, None),
        (n * m, None, FloorDiv(n * m, 2)),
        (n + Mod(32 - Mod(n, 32), 32), None, n),
    ],
)
def test_bounds_proved_to_fit(size, start, end):
    assert form_of_length(size, start, end) is fitting


@pytest.mark.parametrize(
    "size, start, end",
    [
        (n, None, m),
        (n * m, None, n),
        (n, None, FloorDiv(n**2, 40)),
        (n, n - 1, None),
        (n, None, Max(1, n - 3)),
        (n, None, FloorDiv(n, 2) + FloorDiv(n, 3) + 20),
    ],
)
def test_bounds_that_do_not_fit_every_size(size, start, end):
    assert form_of_length(size, start, end) is not fitting
