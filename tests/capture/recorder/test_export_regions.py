"""Higher-order operators of torch.export: branches, loops and regions, each way through equal to
eager."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._higher_order_ops import associative_scan, scan
from torch._higher_order_ops.map import map as map_over

from tests.lower.ops.harness import check

N = {0: [0]}


def t(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype)


class BranchesOverState(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x):
        return torch.cond(
            x.sum() > 0, lambda x: self.linear(x) + self.shift, lambda x: x - self.shift, (x,)
        )


class BranchesInAChild(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = BranchesOverState()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.child(self.child(x)))


def branch_of_pytrees(x):
    def then(inputs):
        return {"a": inputs["x"] + 1, "b": (inputs["y"][0] * 2, inputs["y"][1])}

    def otherwise(inputs):
        return {"a": inputs["x"] - 1, "b": (inputs["y"][1], inputs["y"][0])}

    return torch.cond(x.sum() > 0, then, otherwise, ({"x": x, "y": [x * 3, x * 4]},))


def nested_branches(x):
    def positive(x):
        return torch.cond(
            x.max() > 1,
            lambda x: torch.cond(x.min() > 0, lambda x: x * 2, lambda x: x * 3, (x,)),
            lambda x: x + 20,
            (x,),
        )

    return torch.cond(x.sum() > 0, positive, lambda x: -x, (x,)) + 1


def branch_in_loop(x):
    def body(i, x):
        x = torch.cond(x.sum() > 10, lambda x: x / 2, lambda x: x * 3, (x,))
        return i + 1, x

    return torch.while_loop(lambda i, x: (i < 6) & (x.sum() < 50), body, (torch.tensor(0), x))


def loop_in_branch(x):
    def loop(x):
        _, y = torch.while_loop(
            lambda i, x: x.sum() < 100, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x)
        )
        return y

    return torch.cond(x.sum() > 0, loop, lambda x: x - 1, (x,))


def branch_by_size(x):
    return torch.cond(x.shape[0] > 3, lambda x: x + 1, lambda x: x - 1, (x,))


def branch_by_sizes_of_two(x):
    return torch.cond(
        x.shape[0] * 2 + 1 > x.shape[1] ** 2, lambda x: x.sum(0), lambda x: x.mean(0), (x,)
    )


def branches_of_other_sizes(x):
    return torch.cond(x.sum() > 0, lambda x: x[:2] + 1, lambda x: x[1:] * 2, (x,)) * 2


def branches_of_other_sizes_by_size(x):
    y = torch.cond(x.shape[0] > 3, lambda x: x[:2] + 1, lambda x: x.repeat(2), (x,))
    return y, y.sum(), torch.ones(y.shape[0])


def branches_of_data_dependent_sizes(x):
    y = torch.cond(x.sum() > 0, lambda x: x[x > 0], lambda x: x[x < 0], (x,))
    return y.sum(), y * 2


def branch_by_a_read_number(x):
    n = x.sum().to(torch.int64).item()
    return torch.cond(n > 3, lambda x: x + 1, lambda x: x - 1, (x,))


def branch_without_operands(x):
    return x + torch.cond(x.sum() > 0, lambda: torch.ones(3), lambda: torch.zeros(3), ())


def branch_closes_over_tensors(x):
    y = x * 2
    n = x.shape[0]
    return torch.cond(x.sum() > 0, lambda z: z + y * n, lambda z: z - y, (x,))


def branch_returns_operand(x):
    return torch.cond(x.sum() > 0, lambda x: x.clone(), lambda x: x.clone(), (x,))


def branches_of_mixed_results(x):
    def then(x):
        return x + 1, x.sum(0) > 0, torch.arange(3)

    def otherwise(x):
        return -x, x.mean(0) > 1, torch.zeros(3, dtype=torch.int64)

    return torch.cond(x[0] > 0, then, otherwise, (x,))


def writes_of_its_own(x):
    def then(x):
        y = x.clone()
        y[0] = 7
        y.mul_(2)
        return y

    return torch.cond(x.sum() > 0, then, lambda x: x * 1, (x,))


def loop_of_numbers(x):
    return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x))


def loop_of_numbers_and_sizes(x):
    def goes_on(i, n, x):
        return i < n

    return torch.while_loop(goes_on, lambda i, n, x: (i + 2, n, x + i), (0, x.shape[0], x))


def loop_of_a_number_as_index(x):
    def body(i, total):
        return i + 1, total + x[i] * (i + 1)

    return torch.while_loop(lambda i, total: i < x.shape[0], body, (0, torch.zeros(())))


def loop_bounded_by_data(x):
    def body(i, x):
        return i + 1, x * 1.5

    return torch.while_loop(lambda i, x: x.abs().max() < 20, body, (torch.tensor(0), x + 1))


def loop_over_dict(x):
    state = {"i": torch.zeros((), dtype=torch.int64), "x": x}

    def body(state):
        return ({"i": state["i"] + 1, "x": state["x"] * 2},)

    return torch.while_loop(lambda s: s["i"] < s["x"].shape[0], body, (state,))


def loop_in_loop(x):
    def outer(i, x):
        _, y = torch.while_loop(
            lambda j, y: j < i, lambda j, y: (j + 1, y + j), (torch.tensor(0), x)
        )
        return i + 1, y * 2

    return torch.while_loop(lambda i, x: (i < 4) & (x.sum() < 100), outer, (torch.tensor(0), x))


def loop_with_data_dependent_condition(x):
    def goes_on(i, x):
        return (torch.ones(x[x > 0].shape[0]).sum() > 1) & (i < 50)

    return torch.while_loop(goes_on, lambda i, x: (i + 1, x - 1), (torch.tensor(0), x))


def loop_with_data_dependent_body(x):
    def body(i, total, x):
        positive = x[x > 0]
        return i + 1, total + positive.sum() * positive.shape[0], x - 1

    start = (torch.tensor(0), torch.zeros(()), x)
    return torch.while_loop(lambda i, total, x: i < 4, body, start)


def loop_reads_numbers(x):
    def goes_on(i, x):
        return i.item() < 3

    def body(i, x):
        n = i.item()
        return i + 1, x * (n + 1)

    return torch.while_loop(goes_on, body, (torch.tensor(0), x))


def nested_loops_of_numbers(x):
    def outer(i, x):
        _, y = torch.while_loop(
            lambda j, y: j < i, lambda j, y: (j + 1, y + j * i), (torch.tensor(0), x)
        )
        return i + 1, y * 2

    return torch.while_loop(lambda i, x: i < x.shape[0], outer, (0, x))


def loop_that_never_runs(x):
    return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (x.shape[0], x))


def loop_gives_a_size(x):
    n, y = torch.while_loop(lambda n, x: n < 9, lambda n, x: (n * 2, x + n), (x.shape[0], x))
    return torch.arange(n), y, torch.cat([y, torch.zeros(n)])


def loop_bounded_by_a_read_number(x):
    n = x.abs().sum().to(torch.int64).item()
    return torch.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x + i * n), (0, x))


def loop_in_loop_with_data_dependent_conditions(x):
    def inner(x):
        return torch.while_loop(
            lambda j, y: y[y > 0].shape[0] > 1, lambda j, y: (j + 1, y - 1), (torch.tensor(0), x)
        )

    def outer(i, total, x):
        j, y = inner(x)
        return i + 1, total + j, y + 2

    def goes_on(i, total, x):
        return (i < 3) & (torch.ones(x[x > -1].shape[0]).sum() > 0)

    start = (torch.tensor(0), torch.tensor(0), x)
    return torch.while_loop(goes_on, outer, start)


def loop_with_a_branch_of_data_dependent_sizes(x):
    def body(i, total, x):
        y = torch.cond(x.sum() > 0, lambda x: x[x > 0], lambda x: x[x < 0], (x,))
        return i + 1, total + y.sum() * y.shape[0], x - 1

    start = (torch.tensor(0), torch.zeros(()), x)
    return torch.while_loop(lambda i, total, x: i < 3, body, start)


def branches_that_read_numbers(x):
    n = (x > 0).sum()

    def then(x, n):
        return torch.arange(n.item()) * 2

    def otherwise(x, n):
        return torch.zeros((n + 1).item(), dtype=torch.int64)

    y = torch.cond(x.sum() > 0, then, otherwise, (x, n))
    return y, y.shape[0], torch.cond(y.sum() > 1, lambda y: y + 1, lambda y: y - 1, (y,))


def branch_after_branch(x):
    y = torch.cond(x.sum() > 0, lambda x: x[x > 0], lambda x: x[x < 0], (x,))
    z = torch.cond(y.shape[0] > 1, lambda y: y.sum(), lambda y: y.sum() * 10, (y,))
    return y, z


class LoopOverState(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("limit", torch.tensor(4))

    def forward(self, x):
        return torch.while_loop(
            lambda i, x: (i < self.limit) & (x.abs().sum() < 40),
            lambda i, x: (i + 1, torch.relu(self.linear(x)) + x),
            (torch.tensor(0), x),
        )


def running_sum(x):
    return scan(lambda c, i: (c + i, (c + i) * 2), torch.zeros(3), x, dim=0)


def running_sum_backwards(x):
    return scan(lambda c, i: (c + i, c * i), torch.ones(3), x, dim=0, reverse=True)


def running_sum_over_the_last_dim(x):
    return scan(lambda c, i: (c + i, c - i), torch.zeros(x.shape[0]), x, dim=1)


def scan_of_pytrees(x):
    def step(carried, item):
        h, c = carried["h"], carried["c"]
        h = torch.tanh(h + item[0])
        c = c * item[1] + h
        return {"h": h, "c": c}, [h * 2, {"sum": c.sum()}]

    start = {"h": torch.zeros(3), "c": torch.ones(3)}
    return scan(step, start, (x, x * 2), dim=0)


class ScanOverState(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 5)

    def forward(self, x):
        def step(h, item):
            h = self.cell(item, h)
            return h, h.clone()

        return scan(step, torch.zeros(x.shape[1], 5), x, dim=0)


def scan_with_numbers(x):
    n = x.shape[0]
    return scan(lambda c, i: (c + i * n, c + n), torch.zeros(3), x, dim=0)


def scan_with_data_dependent_body(x):
    def step(carried, item):
        positive = item[item > 0]
        return carried + positive.sum(), positive.sum() * positive.shape[0]

    return scan(step, torch.zeros(()), x, dim=0)


def scan_in_scan(x):
    def row(carried, items):
        last, all = scan(lambda c, i: (c * 0.5 + i, c + i), carried.sum(), items, dim=0)
        return carried + last, all

    return scan(row, torch.zeros(3), x, dim=0)


def scan_with_a_branch(x):
    def step(carried, item):
        after = torch.cond(item.sum() > 0, lambda c, i: c + i, lambda c, i: c - i, (carried, item))
        return after, after * 2

    return scan(step, torch.zeros(3), x, dim=0)


def mapped(x):
    return map_over(lambda item, y: item.sum() * y + item, x, x.sum(0))


def mapped_pytree(x):
    return map_over(lambda item: {"a": item["x"] + 1, "b": item["y"].cumsum(0)}, {"x": x, "y": -x})


def mapped_with_data_dependent_body(x):
    return map_over(lambda item: item[item > 0].sum() + (item > 0).sum().item(), x)


def mapped_over_chosen_rows(x):
    rows = x[x[:, 0] > 0]
    torch._check(rows.shape[0] > 0)
    last, sums = scan(lambda c, i: (c + i, c.sum()), torch.zeros(3), rows, dim=0)
    return map_over(lambda row: row.sum() * 2, rows), last, sums


def mapped_in_map(x):
    return map_over(lambda row: map_over(lambda item, total: item * 2 + total, row, row.sum()), x)


def cumulative_product(x):
    return associative_scan(lambda a, b: a * b, x, dim=0, combine_mode="generic")


def associative_backwards(x):
    return associative_scan(
        lambda a, b: a + b * 1.0, x, dim=0, reverse=True, combine_mode="generic"
    )


def associative_pytree(x):
    def combine(a, b):
        return {"gate": a["gate"] * b["gate"], "state": a["state"] * b["gate"] + b["state"]}

    items = {"gate": torch.sigmoid(x), "state": x}
    return associative_scan(combine, items, dim=1, combine_mode="generic")


def X(*sizes):
    torch.manual_seed(sum(sizes))
    return torch.randn(*sizes)


SIGNS = (t(1.0, 2, 3), t(-1.0, -2, 1), t(0.0, 0, 0), t(0.5, 0.1, 0.1), t(9.0, 8, -1))
LENGTHS = tuple(X(n) for n in (5, 2, 3, 1, 7))
ROWS = tuple(X(n, 3) for n in (4, 1, 2, 7))

CASES = [
    (BranchesOverState(), (X(2, 4), -X(2, 4), X(2, 4) * 10, torch.zeros(2, 4)), None),
    (BranchesInAChild(), (X(2, 4), -X(2, 4), X(2, 4) + 1, X(2, 4) - 1), None),
    (branch_of_pytrees, SIGNS, None),
    (nested_branches, SIGNS, None),
    (branch_in_loop, SIGNS[:1] + SIGNS[3:], None),
    (loop_in_branch, SIGNS, None),
    (branch_by_size, LENGTHS, N),
    (branch_by_sizes_of_two, (X(5, 3), X(2, 3), X(4, 2), X(9, 4)), {0: [0, 1]}),
    (branches_of_other_sizes, SIGNS, None),
    (branches_of_other_sizes_by_size, LENGTHS, N),
    (branches_of_data_dependent_sizes, SIGNS, None),
    (branch_by_a_read_number, SIGNS, None),
    (branch_without_operands, SIGNS, None),
    (branch_closes_over_tensors, LENGTHS, N),
    (branch_returns_operand, SIGNS, None),
    (branches_of_mixed_results, SIGNS, None),
    (writes_of_its_own, SIGNS, None),
    (loop_of_numbers, LENGTHS, N),
    (loop_of_numbers_and_sizes, LENGTHS, N),
    (loop_of_a_number_as_index, LENGTHS, N),
    (loop_bounded_by_data, SIGNS, None),
    (loop_over_dict, LENGTHS, N),
    (loop_in_loop, SIGNS, None),
    (loop_with_data_dependent_condition, SIGNS, None),
    (loop_with_data_dependent_body, SIGNS, None),
    (loop_reads_numbers, SIGNS, None),
    (nested_loops_of_numbers, LENGTHS, N),
    (loop_that_never_runs, LENGTHS, N),
    (loop_gives_a_size, LENGTHS, N),
    (loop_bounded_by_a_read_number, SIGNS, None),
    (loop_in_loop_with_data_dependent_conditions, SIGNS, None),
    (loop_with_a_branch_of_data_dependent_sizes, SIGNS, None),
    (branches_that_read_numbers, SIGNS, None),
    (branch_after_branch, SIGNS, None),
    (LoopOverState(), (X(2, 3), X(2, 3) * 9, torch.zeros(2, 3)), None),
    (running_sum, ROWS, N),
    (running_sum_backwards, ROWS, N),
    (running_sum_over_the_last_dim, (X(2, 4), X(3, 2), X(1, 5)), {0: [0, 1]}),
    (scan_of_pytrees, ROWS, N),
    (ScanOverState(), (X(4, 2, 3), X(2, 3, 3), X(1, 1, 3)), {0: [0, 1]}),
    (scan_with_numbers, ROWS, N),
    (scan_with_data_dependent_body, (*ROWS, -X(3, 3).abs()), N),
    (scan_in_scan, ROWS, N),
    (scan_with_a_branch, ROWS, N),
    (mapped, ROWS, N),
    (mapped_pytree, ROWS, N),
    (mapped_with_data_dependent_body, (*ROWS, -X(3, 3).abs()), N),
    (mapped_over_chosen_rows, (X(4, 3).abs(), X(2, 3).abs(), X(5, 3).abs() * t(1.0, -1, 1)), N),
    (mapped_in_map, ROWS, N),
    (cumulative_product, ROWS, N),
    (associative_backwards, ROWS, N),
    (associative_pytree, (X(2, 4), X(3, 2), X(1, 5)), {0: [0, 1]}),
]


def _name(model):
    return getattr(model, "__name__", type(model).__name__)


@pytest.mark.parametrize("case", CASES, ids=lambda case: _name(case[0]))
def test_equal_to_eager(case):
    model, (first, *others), dynamic = case
    check(model, first, dynamic=dynamic, others=[(o,) for o in others], captures=("export",))


# -- tensors that a scan starts from and that are met again ---------------------------------------


def scan_from_one_tensor_twice(x):
    zero = torch.zeros(4)

    def step(carried, row):
        total, weighted = carried
        return (total + row, weighted * 0.5 + total), total - weighted

    return scan(step, (zero, zero), x)


def scan_that_reads_its_start(x):
    start = x.sum(0)

    def step(carried, row):
        return carried.sin() + row, start * row + carried

    return scan(step, start, x)


class ScannedCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x):
        hidden = x[:1] * 2

        def step(carried, row):
            after = self.cell(row.unsqueeze(0), carried)
            return after, after * hidden.mean()

        return scan(step, hidden, x)


@pytest.mark.parametrize(
    "model", [scan_from_one_tensor_twice, scan_that_reads_its_start, ScannedCell()]
)
def test_scans_tell_apart_what_is_one_tensor_at_first(model):
    check(
        model,
        torch.randn(3, 4),
        dynamic=N,
        others=[(torch.randn(n, 4),) for n in (1, 2, 7)],
        captures=("export",),
    )
