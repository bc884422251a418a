"""Size expressions in the graph give what Python gives, negative numbers included."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from tests.lower.ops.harness import check

EXPRESSIONS = {
    "h // 2 + 1": lambda h, w: h // 2 + 1,
    "(8 - h % 8) % 8": lambda h, w: (8 - h % 8) % 8,
    "h * w - 3": lambda h, w: h * w - 3,
    "(h - 20) // 3": lambda h, w: (h - 20) // 3,
    "(3 - h) % 5": lambda h, w: (3 - h) % 5,
    "-(-h // 4)": lambda h, w: -(-h // 4),
    "h * h": lambda h, w: h * h,
    "(h + w) // (w + 1)": lambda h, w: (h + w) // (w + 1),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_arithmetic_on_sizes(text: str) -> None:
    compute = EXPRESSIONS[text]

    def model(x: torch.Tensor) -> torch.Tensor:
        return x.sum() + compute(x.shape[0], x.shape[1])

    others = [(torch.randn(h, w),) for h, w in ((2, 9), (16, 3), (31, 7))]
    check(model, torch.randn(6, 5), dynamic={0: [0, 1]}, others=others)


def test_sizes_as_sizes() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        b, h = x.shape
        return (
            torch.arange(h),
            torch.zeros(b, h // 2 + 1),
            x.view(b, -1, 1).expand(b, h, 3),
            x[:, : h // 2],
            x.repeat(1, 2).reshape(b * 2, h),
            torch.nn.functional.pad(x, (0, (8 - h % 8) % 8)),
        )

    others = [(torch.randn(b, h),) for b, h in ((2, 8), (5, 9), (1, 17))]
    check(model, torch.randn(3, 6), dynamic={0: [0, 1]}, others=others)


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("name", ["u0", "u1", "s0", "s77"])
def test_a_dim_may_be_called_as_pytorch_calls_another(name: str, capture: str) -> None:
    class UpToCount(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[: torch.nonzero(x)[:, 0].shape[0]]

    x = torch.tensor([1.0, 0, 2, 0])
    program = sardonyx.export(UpToCount(), (x,), dynamic_shapes=({0: name},), capture=capture)
    assert torch.equal(program(x), x[:2])
    (output,), (given,) = program.model.graph.outputs, program.model.graph.inputs
    assert str(given.shape[0]) == name != str(output.shape[0])


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_dim_may_be_called_as_the_expression_of_another(capture: str) -> None:
    class Doubled(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return y[: 2 * x.shape[0]]

    labels = {"x": {0: "n"}, "y": {0: "2*n"}}  # which 9 is not
    args = (torch.ones(2), torch.arange(9.0))
    program = sardonyx.export(Doubled(), args, dynamic_axes=labels, capture=capture)
    assert torch.equal(program(*args), torch.arange(4.0))
