"""Symbolic functions written for older opsets, whose operators had attributes for inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import sardonyx

X = torch.randn(2, 1, 5, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda g, x: g.op("Clip", x, min_f=0.0), lambda x: x.clamp(min=0)),
        (lambda g, x: g.op("Clip", x, max_f=0.5), lambda x: x.clamp(max=0.5)),
        (
            lambda g, x: g.op("Unsqueeze", g.op("Squeeze", x, axes_i=[1]), axes_i=[1]),
            lambda x: x,
        ),
        (
            lambda g, x: g.op("Mul", x, g.op("ReduceSum", x, axes_i=[2], keepdims_i=1)),
            lambda x: x * x.sum(2, keepdim=True),
        ),
        (
            lambda g, x: g.op(
                "Concat",
                g.op("Slice", x, axes_i=[2], starts_i=[1], ends_i=[5]),
                g.op("Slice", x, axes_i=[2], starts_i=[0], ends_i=[1]),
                axis_i=2,
            ),
            lambda x: x.roll(-1, 2),
        ),
        (
            lambda g, x: g.op("Pad", x, pads_i=[0, 0, 2, 0, 0, -2], value_f=3.0),
            lambda x: torch.nn.functional.pad(x, (2, -2), value=3.0),
        ),
        (lambda g, x: g.op("TopK", x, k_i=5, outputs=2)[0], lambda x: x.topk(5).values),
    ],
)
def test_an_attribute_that_is_an_input_now(
    write: Callable[..., Any], expected: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    sardonyx.register_custom_op_symbolic("aten::erfinv", lambda g, self: write(g, self), 9)
    try:
        program = sardonyx.export(torch.erfinv, (X,), capture="trace")
    finally:
        sardonyx.unregister_custom_op_symbolic("aten::erfinv", 9)
    torch.testing.assert_close(program(X), expected(X))
