"""Symbolic functions for operators on quantized tensors: scales, axes and dtypes that are not
known, and functions that are not called."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import sardonyx
from sardonyx import symbolic_helper as helper

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor"),
    pytest.mark.filterwarnings("ignore:torch.dequantize"),
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]
opset9 = sardonyx.symbolic_opset9
CAPTURES = pytest.mark.parametrize("capture", ["trace", "script"])
Q = torch.ops.quantized


def seeded(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def export(model: nn.Module, capture: str, *args: torch.Tensor, **options: Any):
    given = torch.jit.script(model) if capture == "script" else model
    return sardonyx.export(given, args, capture=capture, **options)


def register(name: str, function: Any) -> None:
    sardonyx.register_custom_op_symbolic(name, function, 9)


def real(g: Any, quantized: Any) -> Any:
    return helper.dequantize_helper(g, quantized)[0]


class Scaled(nn.Module):
    """The scale of the result is twice that of the operand, which is computed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = torch.quantize_per_tensor_dynamic(x, torch.quint8, False)
        return torch.ops.quantized.mul_scalar(q, 2.0).dequantize()


class Shifted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale, zero_point = x.abs().max() / 100, torch.tensor(120)
        q = torch.quantize_per_tensor(x, scale, zero_point, torch.quint8)
        return torch.ops.quantized.add_scalar(q, 2.0).dequantize()


@CAPTURES
@pytest.mark.parametrize("model", [Scaled(), Shifted()], ids=["mul", "add"])
def test_a_scale_that_is_computed_is_not_guessed(capture: str, model: nn.Module):
    register("quantized::mul_scalar", lambda g, qa, b: opset9.mul(g, real(g, qa), b))
    register("quantized::add_scalar", lambda g, qa, b: opset9.add(g, real(g, qa), b))
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="depends on one that is computed"):
        export(model, capture, seeded(3, 4))


@pytest.fixture
def operators_of_ones_own() -> Any:
    def second(qa: torch.Tensor, qb: torch.Tensor) -> torch.Tensor:
        total = qa.dequantize() + qb.dequantize()
        return torch.quantize_per_tensor(total, qb.q_scale(), qb.q_zero_point(), torch.quint8)

    def of_values(qa: torch.Tensor, qb: torch.Tensor) -> torch.Tensor:
        total = qa.dequantize() + qb.dequantize()
        return torch.quantize_per_tensor(total, float(total.max()) / 9 + 1, 3, torch.quint8)

    with torch.library._scoped_library("quantized", "FRAGMENT") as library:
        for name, kernel in (("second_of", second), ("of_values", of_values)):
            library.define(f"{name}(Tensor qa, Tensor qb) -> Tensor")
            library.impl(name, kernel, "QuantizedCPU")
        yield


@CAPTURES
@pytest.mark.usefixtures("operators_of_ones_own")
def test_whose_scale_an_operator_of_ones_own_gives(capture: str):
    """That of its second operand, although both are computed; or one of the values."""
    for name in ("second_of", "of_values"):
        register(f"quantized::{name}", lambda g, a, b: opset9.add(g, real(g, a), real(g, b)))

    class Second(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a = torch.quantize_per_tensor_dynamic(x, torch.quint8, False)
            b = torch.quantize_per_tensor_dynamic(x * 3, torch.quint8, False)
            return torch.ops.quantized.second_of(a, b).dequantize()

    class OfValues(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a = torch.quantize_per_tensor(x, 0.05, 120, torch.quint8)
            return torch.ops.quantized.of_values(a, a).dequantize()

    program = export(Second(), capture, seeded(3, 4))
    for x in (seeded(3, 4), seeded(3, 4) * 5):
        torch.testing.assert_close(program(x), Second()(x), rtol=0, atol=0.2)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="depends on values"):
        export(OfValues(), capture, seeded(3, 4))


class Channels(nn.Module):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 2, 3])
        return torch.quantize_per_channel(x, scales, zeros, self.axis, torch.quint8).dequantize()


def test_the_axis_of_channels_reaches_a_function_of_the_file():
    onnxscript = pytest.importorskip("onnxscript", reason="these are its functions")
    from onnxscript import opset17 as op

    domain = onnxscript.values.Opset("my", 1)

    @onnxscript.script(domain)
    def without(self, self_scale, self_zero_point):
        return op.DequantizeLinear(self, self_scale, self_zero_point)

    @onnxscript.script(domain)
    def along(self, self_scale, self_zero_point, self_axis: int):
        return op.DequantizeLinear(self, self_scale, self_zero_point, axis=self_axis)

    def exported(function: Any, axis: int) -> sardonyx.ONNXProgram:
        table = {torch.ops.aten.dequantize.self: function}
        return export(Channels(axis), "trace", x, custom_translation_table=table)

    x = seeded(3, 3)
    for function, axis in ((along, 0), (along, 1), (without, 1)):
        torch.testing.assert_close(exported(function, axis)(x), Channels(axis)(x))
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="take self_axis, which is 0"):
        exported(without, 0)


@pytest.mark.parametrize("nested", [False, True])
def test_real_numbers_of_a_function_of_the_file_are_quantized(nested: bool):
    onnxscript = pytest.importorskip("onnxscript", reason="these are its functions")
    from onnxscript import opset17 as op

    domain = onnxscript.values.Opset("my", 1)

    @onnxscript.script(domain)
    def total(a, b):
        return op.Add(a, b)

    @onnxscript.script(domain)
    def plain(qa, qa_scale, qa_zero_point, qb, qb_scale, qb_zero_point, scale: float, zero_point):
        a = op.DequantizeLinear(qa, qa_scale, qa_zero_point)
        return op.Add(a, op.DequantizeLinear(qb, qb_scale, qb_zero_point))

    @onnxscript.script(domain)
    def calling(qa, qa_scale, qa_zero_point, qb, qb_scale, qb_zero_point, scale: float, zero_point):
        a = op.DequantizeLinear(qa, qa_scale, qa_zero_point)
        return total(a, op.DequantizeLinear(qb, qb_scale, qb_zero_point))

    table = {torch.ops.quantized.add.default: calling if nested else plain}
    axes = {"x": {0: "n"}}
    program = export(
        Sum(), "trace", seeded(3, 4), dynamic_axes=axes, custom_translation_table=table
    )
    for n in (0, 1, 2, 7):
        x = seeded(n, 4)
        torch.testing.assert_close(program(x), Sum()(x), rtol=0, atol=0.101)


class Sum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = torch.quantize_per_tensor(x, 0.05, 120, torch.quint8)
        return torch.ops.quantized.add(q, q, 0.1, 100).dequantize()


@CAPTURES
def test_a_result_of_unknown_dtype_is_asked_for(capture: str):
    def add(g: Any, qa: Any, qb: Any, scale: Any, zero_point: Any) -> Any:
        total = opset9.add(g, real(g, qa), real(g, qb))
        made = g.op("com.microsoft::Gelu", total)
        return made.setType(total.type()) if is_told else made

    register("quantized::add", add)
    is_told = False
    with pytest.raises(sardonyx.SymbolicFunctionError, match=r"call setType\(\)"):
        export(Sum(), capture, seeded(3, 4))
    is_told = True
    program = export(Sum(), capture, seeded(3, 4))
    q = torch.quantize_per_tensor(seeded(3, 4), 0.05, 120, torch.quint8).dequantize()
    expected = nn.functional.gelu(q + q)
    torch.testing.assert_close(program(seeded(3, 4)), expected, rtol=0, atol=0.06)


class Both(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = torch.quantize_per_tensor(x, 0.05, 120, torch.quint8)
        one, other = torch.dequantize([q, q])
        return one + other


def test_a_list_is_converted_without_the_function():
    register("aten::dequantize", lambda g, x: real(g, x))
    with pytest.warns(sardonyx.OnnxExporterWarning, match="aten::dequantize.tensors is not used"):
        program = export(Both(), "trace", seeded(3, 4))
    torch.testing.assert_close(program(seeded(3, 4)), Both()(seeded(3, 4)))


def test_functions_that_are_not_called_are_told():
    class Integers(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.quantize_per_tensor(x, 0.05, 120, torch.quint8).int_repr()

    register("aten::int_repr", lambda g, x: x)
    with pytest.warns(sardonyx.OnnxExporterWarning, match="aten::int_repr is not used"):
        program = export(Integers(), "trace", seeded(3, 4))
    assert torch.equal(program(seeded(3, 4)), Integers()(seeded(3, 4)))


@pytest.mark.parametrize("name", ["quantized::add", "quantized::add.default"])
def test_default_is_no_overload(name: str):
    register(name, lambda g, qa, qb, *rest: opset9.sub(g, real(g, qa), real(g, qb)))
    program = export(Sum(), "trace", seeded(3, 4))
    assert not program(seeded(3, 4)).any()
    sardonyx.unregister_custom_op_symbolic(name, 9)
    assert export(Sum(), "trace", seeded(3, 4))(seeded(3, 4)).any()


@CAPTURES
@pytest.mark.parametrize("axis", [0, 1])
def test_find_mismatch_of_channels(capture: str, axis: int):
    register("aten::dequantize", lambda g, x: real(g, x))
    model = torch.jit.script(Channels(axis)) if capture == "script" else Channels(axis)
    assert not sardonyx.verification.find_mismatch(model, seeded(3, 3)).has_mismatch()


def test_zero_points_are_compared_as_numbers():
    """356 is no other way to write 100 of eight bits."""

    def add(g: Any, qa: Any, qb: Any, scale: Any, zero_point: Any) -> Any:
        total = opset9.add(g, real(g, qa), real(g, qb))
        integers = helper._unpack_tuple(helper.quantize_helper(g, total, scale, zero_point))[0]
        return integers, scale, torch.tensor(356)

    register("quantized::add", add)
    with pytest.raises(sardonyx.SymbolicFunctionError, match="356 is no number of uint8"):
        export(Sum(), "trace", seeded(3, 4))


def test_a_list_of_tensors_is_quantized():
    class Several(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scales, zeros = torch.tensor([0.05, 0.1]), torch.tensor([3, 4])
            one, other = torch.quantize_per_tensor([x, x * 2], scales, zeros, torch.quint8)
            return one.dequantize() - other.dequantize()

    program = export(Several(), "trace", seeded(3, 4))
    torch.testing.assert_close(program(seeded(3, 4)), Several()(seeded(3, 4)))
