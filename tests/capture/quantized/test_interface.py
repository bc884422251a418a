"""Quantized tensors as inputs and outputs: integers in the file, quantized for the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import sardonyx

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_channel"),
]
CAPTURES = pytest.mark.parametrize("capture", ["export", "trace"])


def quantized(rows: int = 3, scale: float = 0.1, dtype: torch.dtype = torch.quint8) -> torch.Tensor:
    values = torch.randn(rows, 4, generator=torch.Generator().manual_seed(rows))
    return torch.quantize_per_tensor(values, scale, 3, dtype)


def per_channel() -> torch.Tensor:
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2])
    return torch.quantize_per_channel(torch.randn(3, 4), scales, zeros, 0, torch.qint8)


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x.dequantize() * 2


def added(x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = torch.ops.quantized.add(x, x, 0.2, 0)
    return result


def nested(x: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"sum": added(x["q"]), "rows": x["q"][:2]}


def assert_same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert (found.dtype, found.is_quantized) == (expected.dtype, expected.is_quantized)
    if not found.is_quantized:
        torch.testing.assert_close(found, expected)
        return
    assert (found.q_scale(), found.q_zero_point()) == (expected.q_scale(), expected.q_zero_point())
    steps = found.int_repr().long() - expected.int_repr().long()
    assert steps.abs().max() <= 1


@CAPTURES
@pytest.mark.parametrize("model", [doubled, added])
@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8])
def test_an_input_is_its_integers(
    model: Callable[..., Any], dtype: torch.dtype, capture: str
) -> None:
    axes = {"x": {0: "rows"}}
    x = quantized(dtype=dtype)
    program = sardonyx.export(model, (x,), capture=capture, dynamic_axes=axes, verify=True)
    (given,) = program.model.graph.inputs
    assert (given.name, given.dtype.name.lower()) == ("x", str(x.int_repr().dtype)[6:])
    other = quantized(5, dtype=dtype)
    assert_same(program(other), model(other))


@pytest.mark.parametrize("model", [doubled, added])
def test_in_a_script(model: Callable[..., Any]) -> None:
    x = quantized()
    program = sardonyx.export(torch.jit.script(model), (x,), verify=True)
    assert_same(program(x), model(x))


@CAPTURES
def test_a_grid_for_each_channel(capture: str) -> None:
    x = per_channel()
    program = sardonyx.export(doubled, (x,), capture=capture, verify=True)
    torch.testing.assert_close(program(x), doubled(x))


@CAPTURES
def test_an_output_is_its_integers(capture: str) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)

    x = torch.randn(3, 4)
    program = sardonyx.export(model, (x,), capture=capture, verify=True)
    assert program.model.graph.outputs[0].dtype.name == "UINT8"
    assert_same(program(x), model(x))


@CAPTURES
def test_inside_of_containers(capture: str) -> None:
    x = {"q": quantized()}
    shapes = {"x": {"q": {0: "rows"}}}
    program = sardonyx.export(nested, (x, {}), capture=capture, dynamic_shapes=shapes)
    assert [value.name for value in program.model.graph.inputs] == ["x.q"]
    found, expected = program(x), nested(x)
    for name in expected:
        assert_same(found[name], expected[name])


def test_another_grid_is_refused() -> None:
    program = sardonyx.export(doubled, (quantized(),))
    with pytest.raises(sardonyx.InvalidOptionError, match=r"by scale 0\.1.*\n.*by scale 0\.5"):
        program(quantized(scale=0.5))
    with pytest.raises(sardonyx.InvalidOptionError, match=r"quantized by scale 0\.1"):
        program(torch.randn(3, 4))


@CAPTURES
def test_an_output_with_a_grid_for_each_channel_is_refused(capture: str) -> None:
    with pytest.raises(sardonyx.CaptureError, match="has one for each channel"):
        sardonyx.export(lambda x: x.clone(), (per_channel(),), capture=capture)


def test_an_output_whose_scale_data_decides_is_refused() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor_dynamic(x, torch.quint8, False)

    with pytest.raises(sardonyx.CaptureError, match="scale is computed at run time"):
        sardonyx.export(model, (torch.randn(3),), capture="export")


def test_an_output_whose_scale_is_a_computed_tensor_is_refused() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor(x, x.abs().max() / 127, torch.tensor(0), torch.qint8)

    with pytest.raises(sardonyx.CaptureError, match="scale is computed at run time"):
        sardonyx.export(model, (torch.rand(3),), capture="export")


@CAPTURES
def test_a_number_assigned_to_a_part_is_refused(capture: str) -> None:
    def assigned(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0] = 0.5
        return y

    def filled(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0].fill_(0.5)
        return y

    with pytest.raises(sardonyx.UnsupportedOperatorError, match="fill_"):
        sardonyx.export(assigned, (quantized(),), capture=capture)
    program = sardonyx.export(filled, (quantized(),), capture=capture)
    assert_same(program(quantized()), assigned(quantized()))


class Shifted(torch.nn.Module):
    shift = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.quantize_per_tensor(x + self.shift, 0.5, 0, torch.qint8)
        return x.dequantize().reshape(-1)


def test_one_step_apart_is_equal() -> None:
    model, x = Shifted(), torch.tensor([[0.2, 0.8], [1.4, -3.0]])
    program = sardonyx.export(model, (x,))
    assert program.verify((x,)).largest_absolute == 0
    model.shift = 0.5
    assert program.verify((x,)).largest_absolute == 0.5
    model.shift = 1.0
    with pytest.raises(sardonyx.VerificationError, match="4 of 4 elements differ"):
        program.verify((x,))


@CAPTURES
def test_the_step_of_a_scale_in_a_buffer(capture: str) -> None:
    """As models that FX converts have them."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.tensor(0.25))
            self.register_buffer("zero", torch.tensor(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.quantize_per_tensor(x, self.scale, self.zero, torch.quint8).dequantize()

    program = sardonyx.export(Model(), (torch.randn(2, 3),), capture=capture, verify=True)
    assert program.signature.outputs[0].step == 0.25
