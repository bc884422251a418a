"""Numbers that a half does not hold: PyTorch's products and activations take them as they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

import sardonyx
from tests.lower.ops.harness import CAPTURES, check

HALVES = (torch.float16, torch.bfloat16)
SPREAD = torch.tensor([3000.0, -50.0, 0.001, 60000.0, 0.37, -0.05, 1.7])
Case = Callable[[torch.Tensor], torch.Tensor]

EXACT: dict[str, Case] = {
    "mul by a small number": lambda x: x * 1e-8,
    "mul by a large number": lambda x: x[2:3] * 70000,
    "mul by a fraction": lambda x: x * 0.1,
    "mul by an odd number": lambda x: x * 257,
    "mul_": lambda x: x.clone().mul_(1e-8),
    "mul by a tensor without dims": lambda x: x * torch.tensor(0.1),
    "mul of a tensor without dims": lambda x: torch.tensor(0.1) * x,
    "mul by a tensor of one integer": lambda x: x[2:] * torch.tensor([70001]),
    "div": lambda x: x / 1e5,
    "div by a power of two": lambda x: x / 65536,
    "div to zero": lambda x: torch.div(x, 0.1, rounding_mode="trunc"),
    "floor_divide": lambda x: x // 0.1,
    "addcmul": lambda x: torch.addcmul(x, x[2], x[2], value=1e6),
    "addcdiv": lambda x: torch.addcdiv(x, x[2], x[1], value=1e6),
    "lerp": lambda x: torch.lerp(x, x.flip(0), 0.1),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
    "elu": lambda x: F.elu(x, 1.7),
    "scaled elu": lambda x: torch.ops.aten.elu(x, 1.7, 0.3, 1.1),
    "softplus": lambda x: F.softplus(x, 1.7),
    "softshrink": lambda x: F.softshrink(x, 0.1),
    "threshold": lambda x: F.threshold(x, 0.37, 0.1),
    "threshold below": lambda x: F.threshold(x, 1.7, 0.1),
    "deg2rad": torch.deg2rad,
    "sinc": torch.sinc,
    "logaddexp2": lambda x: torch.logaddexp2(x, x.flip(0)),
    "atan2": lambda x: torch.atan2(x, x.flip(0)),
    "baddbmm": lambda x: torch.baddbmm(
        x.reshape(1, 1, -1), x[2].reshape(1, 1, 1), x.reshape(1, 1, -1), beta=1e-8, alpha=1e-5
    ),
}
ROUNDED: dict[str, Case] = {
    "add": lambda x: x + 0.1,
    "sub": lambda x: x - 0.1,
    "rsub": lambda x: 70000.0 - x,
    "add alpha": lambda x: torch.add(x, x[:1] * 0, alpha=0.1),
    "pow": lambda x: x.abs() ** 0.3333,
    "fmod": lambda x: torch.fmod(x, 0.1),
    "clamp": lambda x: x.clamp(-0.1, 0.1),
    "gt": lambda x: x > 0.37,
    "where": lambda x: torch.where(x > 0, x, 1e5),
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.1),
    "full_like": lambda x: torch.full_like(x, 0.1),
    "hardtanh": lambda x: F.hardtanh(x, -0.1, 0.1),
    "hardshrink": lambda x: F.hardshrink(x, 0.37),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_to_the_last_digit(name: str, dtype: torch.dtype) -> None:
    function = (EXACT | ROUNDED)[name]
    tolerance = 2 * torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    close = torch.finfo(dtype).eps / 8  # far less than one digit
    check(function, SPREAD.to(dtype), captures=["trace"], opsets=[20], rtol=close, atol=tolerance)


ROUNDED_ONCE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda x, y: torch.add(x, y, alpha=0.3337),
    "add an integer times": lambda x, y: torch.add(x, y, alpha=3),
    "add_": lambda x, y: x.clone().add_(y, alpha=0.3337),
    "add a number": lambda x, y: torch.add(x, 1.3, alpha=0.3337),
    "add an element": lambda x, y: torch.add(x, y[0, 0], alpha=0.3337),
    "sub": lambda x, y: torch.sub(x, y, alpha=0.3337),
    "rsub": lambda x, y: torch.rsub(x, y, alpha=0.3337),
    "rsub from a number": lambda x, y: torch.rsub(x, 1.3, alpha=0.3337),
    "addcmul": lambda x, y: torch.addcmul(x, y, x),
    "addcmul of a number": lambda x, y: torch.addcmul(x, y, x, value=0.3337),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x),
    "addcdiv of a number": lambda x, y: torch.addcdiv(x, y, x, value=0.3337),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3337),
    "lerp by a tensor": lambda x, y: torch.lerp(x, y, y),
    "addmm": lambda x, y: torch.addmm(x, x, y),
    "baddbmm": lambda x, y: torch.baddbmm(x[None], x[None], y[None]),
    "baddbmm of numbers": lambda x, y: torch.baddbmm(
        x[None], x[None], y[None], beta=1.77, alpha=0.3337
    ),
    "addmv": lambda x, y: torch.addmv(x[0], x, y[0]),
    "addmv of a number": lambda x, y: torch.addmv(x[0], x, y[0], alpha=0.3337),
    "index_add": lambda x, y: x.index_add(0, torch.arange(64), y, alpha=0.3337),
    "rsqrt": lambda x, y: x.abs().rsqrt(),
    "hypot": torch.hypot,
    "logaddexp": torch.logaddexp,
    "glu": lambda x, y: F.glu(x.clamp(-3, 3)),
    "log1p": lambda x, y: x.abs().log1p(),
    "expm1": lambda x, y: x.expm1(),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("function", ROUNDED_ONCE.values(), ids=ROUNDED_ONCE)
def test_a_step_of_pytorch_is_rounded_once(
    function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    # What is left of whole registers PyTorch's sums round twice: there is nothing left of 64.
    torch.manual_seed(0)
    x, y = ((torch.randn(64, 64) * 3).to(dtype) for _ in range(2))
    program = sardonyx.export(function, (x, y), capture="export")
    differs = program(x, y) != function(x, y)
    assert differs.float().mean() < 1e-3  # rounded twice, a tenth does


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_sizes(dtype: torch.dtype, capture: str) -> None:
    others = [(torch.rand(n, 3).to(dtype),) for n in (0, 1, 2, 7, 2049)]
    check(
        lambda x: (x * (x.shape[0] * 30), x / max(x.shape[0], 1)),
        torch.rand(5, 3).to(dtype),
        dynamic={0: [0]},
        others=others,
        captures=[capture],
        rtol=torch.finfo(dtype).eps / 8,
        atol=0,
    )


@pytest.mark.parametrize("name", ["mul", "div", "softplus", "softshrink"])
def test_numbers_that_a_half_holds_need_no_casts(name: str) -> None:
    functions: dict[str, Case] = {
        "mul": lambda x: x * 0.5,
        "div": lambda x: x / 3,
        "softplus": lambda x: F.softplus(x, 2.0),
        "softshrink": lambda x: F.softshrink(x, 0.5),
    }
    program = sardonyx.export(functions[name], (SPREAD.half(),), capture="trace")
    assert "Cast" not in {node.op_type for node in program.model_proto.graph.node}
