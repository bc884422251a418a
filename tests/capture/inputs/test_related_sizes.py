"""Dynamic dims that follow from each other, one of size 0 or 1 in the example: a decoding step."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

import sardonyx
from sardonyx.capture.inputs.binding import prepare_inputs
from sardonyx.capture.inputs.example_sizes import possible_sums
from sardonyx.options import Options

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
AXES = {"new": {0: "b", 1: "n"}, "past": {0: "b", 1: "p"}, "mask": {0: "b", 1: "t"}}


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, new, past, mask):
        k = torch.cat([past, self.k(new)], 1)
        return self.attended(self.q(new), k, mask[:, None]), k

    def attended(self, q, k, mask):
        scores = (q @ k.mT).masked_fill(mask == 0, float("-inf"))
        return scores.softmax(-1) @ k


class FusedStep(Step):
    def attended(self, q, k, mask):
        return F.scaled_dot_product_attention(q, k, k, attn_mask=mask.bool())


class ShiftedStep(Step):
    """With a mask that has a place for one token more."""

    def attended(self, q, k, mask):
        return super().attended(q, k, mask[..., 1:])


def arguments(b, n, p, more=0):
    return torch.randn(b, n, 8), torch.randn(b, p, 8), torch.ones(b, n + p + more)


# Every example with every kind of step, each pair by one of the captures.
STEPS = [
    (example, kind, ("trace", "export")[(row + column) % 2])
    for row, example in enumerate([(1, 1, 1), (2, 1, 5), (2, 3, 1), (2, 1, 0), (1, 4, 0)])
    for column, kind in enumerate([Step, FusedStep, ShiftedStep])
]


@pytest.mark.parametrize(("example", "kind", "capture"), STEPS)
def test_a_mask_as_long_as_past_and_new_tokens(example, kind, capture):
    torch.manual_seed(0)
    model, more = kind().eval(), kind is ShiftedStep
    program = sardonyx.export(
        model, arguments(*example, more), capture=capture, dynamic_axes=AXES, input_names=list(AXES)
    )
    assert program.notes == ()
    for sizes in (example, (1, 1, 1), (2, 3, 4), (1, 1, 7), (3, 5, 0), (2, 1, 0), (7, 2, 2)):
        inputs = arguments(*sizes, more)
        for got, wanted in zip(program(*inputs), model(*inputs), strict=True):
            torch.testing.assert_close(got, wanted)


def test_dims_that_the_caller_does_not_name():
    auto = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    model = Step().eval()
    program = sardonyx.export(model, arguments(2, 1, 1), dynamic_shapes=(auto, auto, auto))
    inputs = arguments(3, 2, 7)
    for got, wanted in zip(program(*inputs), model(*inputs), strict=True):
        torch.testing.assert_close(got, wanted)


@BOTH
def test_sizes_that_no_sum_explains_are_refused(capture):
    def squared(x, y):
        return x[:, None] * x + y.view(x.shape[0], x.shape[0])

    with pytest.raises(sardonyx.DynamicDimError, match="recorded with another size"):
        sardonyx.export(
            squared,
            (torch.randn(1), torch.randn(1)),
            capture=capture,
            dynamic_axes={"x": {0: "n"}, "y": {0: "m"}},
            input_names=["x", "y"],
        )


def test_likely_sums_come_first():
    inputs = prepare_inputs(
        Step().forward,
        arguments(2, 1, 5),
        None,
        Options(dynamic_axes=AXES, input_names=tuple(AXES)),
    )
    sums = list(possible_sums(inputs.leaves, inputs.dynamic))
    assert {"t": ("n", "p")} in sums[:4]
