"""Fake quantization against eager; a value on the border may end one quantization step apart."""

from __future__ import annotations

import pytest
import torch

from tests.lower.ops.harness import check

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0)) * 3
SCALES = torch.tensor([0.1, 0.05, 0.2, 0.03, 0.3, 0.07])
ZEROS = torch.tensor([3, 0, -5, 10, 2, 1], dtype=torch.int32)
ENABLED = torch.tensor([1])

CASES = [
    ("uint8", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 100, 0, 255), 0.1),
    ("int8", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.03, -7, -128, 127), 0.03),
    ("narrow", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.03, 0, -127, 127), 0.03),
    ("4-bit", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.3, 7, 0, 15), 0.3),
    ("16-bit", lambda x: torch.fake_quantize_per_tensor_affine(x, 1e-4, 5, -32768, 32767), 1e-4),
    (
        "tensor parameters",
        lambda x: torch.fake_quantize_per_tensor_affine(
            x, torch.tensor([0.1]), torch.tensor([9], dtype=torch.int32), 0, 255
        ),
        0.1,
    ),
    (
        "computed parameters",
        lambda x: torch.fake_quantize_per_tensor_affine(
            x, x.abs().max() / 127, torch.zeros(1, dtype=torch.int32), -128, 127
        ),
        0.1,
    ),
    (
        "per channel",
        lambda x: torch.fake_quantize_per_channel_affine(x, SCALES, ZEROS, 1, -128, 127),
        0.3,
    ),
    (
        "real zero points",
        lambda x: torch.fake_quantize_per_channel_affine(
            x, SCALES, torch.linspace(0, 4.7, 6), 1, 0, 255
        ),
        0.3,
    ),
    (
        "learnable",
        lambda x: torch._fake_quantize_learnable_per_tensor_affine(
            x, torch.tensor([0.1]), torch.tensor([3.6]), 0, 255
        ),
        0.1,
    ),
    (
        "learnable per channel",
        lambda x: torch._fake_quantize_learnable_per_channel_affine(
            x, SCALES, ZEROS + 0.3, 1, -128, 127
        ),
        0.3,
    ),
]


@pytest.mark.parametrize(("function", "step"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_within_one_step(function, step) -> None:
    other = torch.randn(3, 6, generator=torch.Generator().manual_seed(1)) * 3
    check(function, X, dynamic={0: [0]}, others=[(other,)], atol=step * 1.01, rtol=0)


def test_most_values_are_equal() -> None:
    program = check(CASES[0][1], X, atol=0.11, rtol=0)
    torch.testing.assert_close(program(X), CASES[0][1](X))
    assert [n.op_type for n in program.model.graph if "Linear" in n.op_type] == [
        "QuantizeLinear",
        "DequantizeLinear",
    ]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.fake_quantize_per_tensor_affine(x, 0.125, 100, 0, 255)

    check(function, X.to(dtype), atol=0.126, rtol=0)


def test_the_mask_says_what_was_in_range() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(x, 0.25, 3, -4, 5)

    check(function, torch.linspace(-3, 3, 25), atol=0.26, rtol=0)


def test_a_switched_off_fake_quantization_is_the_identity() -> None:
    module = torch.ao.quantization.FakeQuantize()
    module.disable_fake_quant()
    module.disable_observer()
    program = check(module, X, captures=("trace",))  # torch.export stops at the switch
    assert not [n for n in program.model.graph if "Linear" in n.op_type]


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("observing", [False, True])
def test_fused_observers(per_channel: bool, observing: bool) -> None:
    quantization = torch.ao.quantization
    make = (
        quantization.default_fused_per_channel_wt_fake_quant
        if per_channel
        else quantization.default_fused_act_fake_quant
    )
    module = make()
    module(X)
    if not observing:
        module.disable_observer()
    state = {k: v.clone() for k, v in module.state_dict().items()}
    check(module, X, atol=0.06, rtol=0)
    if observing:
        return
    assert all(torch.equal(v, state[k]) for k, v in module.state_dict().items())
