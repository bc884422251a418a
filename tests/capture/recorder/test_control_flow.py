"""torch.cond, torch.while_loop, scan and map: If and Loop in the file, equal to eager."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import sardonyx

CAPTURES = ("export", "trace")


class Cond(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        def large(x):
            return self.linear(x) + self.shift

        def small(x):
            y = x.clone()
            y[0] = 7  # a write inside the branch
            return y * 2

        return torch.cond(x.sum() > 0, large, small, (x,))


class NestedCond(nn.Module):
    def forward(self, x):
        def inner(x):
            return torch.cond(x.max() > 1, lambda x: x + 10, lambda x: x + 20, (x,))

        y = x * 2
        y.add_(1)  # the branches see what was written before
        return torch.cond(y.sum() > 0, inner, lambda y: y - 1, (y,)) + x


class ManyResults(nn.Module):
    def forward(self, x):
        def then(x):
            return x + 1, x.sum(0), torch.arange(3)

        def otherwise(x):
            return -x, x.mean(0), torch.zeros(3, dtype=torch.int64)

        return torch.cond(x[0, 0] > 0, then, otherwise, (x,))


class While(nn.Module):
    def forward(self, x):
        def goes_on(i, x):
            return (i < 5) & (x.sum() < 100)

        def body(i, x):
            return i + 1, x * 2

        return torch.while_loop(goes_on, body, (torch.zeros((), dtype=torch.int64), x))


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("model", [Cond, NestedCond, ManyResults, While], ids=lambda m: m.__name__)
def test_each_way_through_gives_what_eager_gives(model, capture):
    torch.manual_seed(0)
    model = model().eval()
    x = torch.rand(3, 4)
    program = sardonyx.export(model, (x,), capture=capture, verify=True)
    for other in (x, -x, x * 30, torch.zeros(3, 4)):
        expected = model(other)
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = program(other)
        found = found if isinstance(found, tuple) else (found,)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_a_loop_over_a_dynamic_dim():
    from torch._higher_order_ops import scan

    class Running(nn.Module):
        def forward(self, x):
            def step(carried, item):
                after = carried + item
                return after, after * 2

            return scan(step, torch.zeros(4), x, dim=0)

    model = Running()
    program = sardonyx.export(
        model, (torch.randn(3, 4),), dynamic_axes={"x": {0: "steps"}}, capture="export"
    )
    for steps in (1, 3, 8):
        x = torch.randn(steps, 4)
        for ours, theirs in zip(program(x), model(x), strict=True):
            torch.testing.assert_close(ours, theirs)
    assert "Loop" in {node.op_type for node in program.model.graph}


def test_a_trace_records_both_branches():
    model = NestedCond()
    program = sardonyx.export(model, (torch.rand(3, 4),), capture="trace")
    assert program.notes == ()
    for x in (torch.rand(3, 4), -torch.rand(3, 4), torch.rand(3, 4) * 100, torch.randn(3, 4)):
        torch.testing.assert_close(program(x), model(x))


def test_a_branch_that_writes_an_input():
    class Writes(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x.add_(1) * 1, lambda x: x - 1, (x,))

    program = sardonyx.export(Writes(), (torch.rand(3),), capture="export")
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(program(x.clone()), x * 2)


def test_a_branch_decided_by_a_dynamic_size():
    class BySize(nn.Module):
        def forward(self, x):
            return torch.cond(x.shape[0] > 4, lambda x: x + 1, lambda x: x - 1, (x,))

    program = sardonyx.export(
        BySize(), (torch.randn(6),), dynamic_axes={"x": {0: "n"}}, capture="export"
    )
    for size in (6, 3, 5, 4):
        x = torch.randn(size)
        torch.testing.assert_close(program(x), BySize()(x))


def test_a_constant_without_data_is_refused():
    class WritesData(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, x):
            self.weight.data.add_(1)
            return x * self.weight

    program = torch.export.export(WritesData(), (torch.ones(4),), strict=True)
    with pytest.raises(sardonyx.CaptureError, match=r"lost a write to \.data"):
        sardonyx.export(program)


_FIRST_TRACE = """
import torch, sardonyx

def decides(x):
    return torch.cond(x.sum() > 0, lambda y: y[: len(y)] * 2, lambda y: y - 1, (x,))

x = torch.ones(3)
program = sardonyx.export(decides, (x,), capture="trace")
for given in (x, -x):
    torch.testing.assert_close(program(given), decides(given))
"""


def test_a_trace_leaves_control_flow_as_it_was() -> None:
    """In a new process: torch._dynamo is first imported while the trace runs."""
    subprocess.run([sys.executable, "-c", _FIRST_TRACE], check=True, timeout=120)
