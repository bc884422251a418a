"""Symbolic functions for operators on quantized tensors: what they get, and what becomes of what
they give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch import nn

import sardonyx
from sardonyx import symbolic_helper as helper

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor"),
    pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max"),
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]
quantization = torch.ao.quantization
opset9 = sardonyx.symbolic_opset9
CAPTURES = pytest.mark.parametrize("capture", ["trace", "script"])
STEP = 0.05
Q = torch.ops.quantized


def seeded(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def export(
    model: nn.Module, capture: str, *args: torch.Tensor, **options: Any
) -> sardonyx.ONNXProgram:
    if capture == "script":
        model = torch.jit.script(model)
    return sardonyx.export(model, args, capture=capture, **options)


def domains(program: sardonyx.ONNXProgram) -> set[str]:
    return {node.domain for node in program.model.graph.all_nodes()}


def operators(program: sardonyx.ONNXProgram) -> list[str]:
    nodes = program.model.graph.all_nodes()
    return [node.op_type for node in nodes if node.op_type != "Constant"]


class Net(nn.Module):
    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=bias)
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2, groups=2, bias=bias)
        self.act = nn.Hardswish()
        self.sums, self.joins = nn.quantized.FloatFunctional(), nn.quantized.FloatFunctional()
        self.head = nn.Linear(8, 5, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(self.quant(x))
        x = self.sums.add(x, self.act(x))
        x = self.up(x)
        x = self.joins.cat([x, x], 1)
        return self.dequant(self.head(x.mean([2, 3])))


def net(engine: str = "", bias: bool = True) -> nn.Module:
    torch.manual_seed(0)
    model = Net(bias).eval()
    if engine == "per channel":
        model.qconfig = quantization.get_default_qconfig("fbgemm")
        model.up.qconfig = quantization.get_default_qconfig("qnnpack")
    else:
        model.qconfig = quantization.get_default_qconfig("qnnpack")
    quantization.prepare(model, inplace=True)
    model(seeded(2, 3, 8, 8))
    return quantization.convert(model)


def register_published(called: list[str]) -> None:
    """As the exporter of TorchScript had these."""

    def conv2d(g, q_input, q_weight, bias, stride, padding, dilation, groups, op_scale, op_zero):
        called.append("conv2d")
        x, x_scale, _, _ = helper.dequantize_helper(g, q_input)
        weight, weight_scale, _, axis = helper.dequantize_helper(g, q_weight)
        q_bias = helper.requantize_bias_helper(g, bias, x_scale, weight_scale, axis)
        bias, _, _, _ = helper.dequantize_helper(g, q_bias)
        out = opset9.conv2d(g, x, weight, bias, stride, padding, dilation, groups)
        return helper.quantize_helper(g, out, op_scale, op_zero)

    def conv_transpose2d(g, q_input, q_weight, bias, *settings):
        stride, padding, output_padding, dilation, groups, scale, zero = settings
        called.append("conv_transpose2d")
        x, _, _, _ = helper.dequantize_helper(g, q_input)
        weight, _, _, _ = helper.dequantize_helper(g, q_weight)
        out = opset9.conv_transpose2d(
            g, x, weight, bias, stride, padding, output_padding, groups, dilation
        )
        return helper.quantize_helper(g, out, scale, zero)

    def linear(g, q_input, q_weight, bias, op_scale, op_zero_point):
        called.append("linear")
        x, x_scale, _, _ = helper.dequantize_helper(g, q_input)
        weight, weight_scale, _, axis = helper.dequantize_helper(g, q_weight)
        q_bias = helper.requantize_bias_helper(g, bias, x_scale, weight_scale, axis)
        bias, _, _, _ = helper.dequantize_helper(g, q_bias)
        return helper.quantize_helper(g, opset9.linear(g, x, weight, bias), op_scale, op_zero_point)

    def add(g, x, y, op_scale, op_zero_point):
        called.append("add")
        x, _, _, _ = helper.dequantize_helper(g, x)
        y, _, _, _ = helper.dequantize_helper(g, y)
        return helper.quantize_helper(g, opset9.add(g, x, y), op_scale, op_zero_point)

    @helper.parse_args("v", "i", "f", "i")
    def cat(g, q_inputs, dim, op_scale, op_zero_point):
        called.append("cat")
        parts = [helper.dequantize_helper(g, x)[0] for x in helper._unpack_list(q_inputs)]
        joined = g.op("Concat", *parts, axis_i=dim)
        scale = g.op("Constant", value_t=torch.tensor(op_scale))
        zero = g.op("Constant", value_t=torch.tensor(op_zero_point, dtype=torch.uint8))
        return helper.quantize_helper(g, joined, scale, zero)

    def hardswish(g, x, op_scale, op_zero_point):
        called.append("hardswish")
        x, _, _, _ = helper.dequantize_helper(g, x)
        return helper.quantize_helper(g, opset9.hardswish(g, x), op_scale, op_zero_point)

    for function in (conv2d, conv_transpose2d, linear, add, cat, hardswish):
        sardonyx.register_custom_op_symbolic(f"quantized::{function.__name__}", function, 10)


def test_at_the_first_opset_that_quantizes():
    """As it is: where ONNX Runtime optimizes, it puts a Round there, which came later."""
    model, called = net(), []
    register_published(called)
    x = seeded(2, 3, 8, 8)
    program = sardonyx.export(model, x, opset_version=10)
    onnx.checker.check_model(program.model_proto)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), options)
    (found,) = session.run(None, {"x": x.numpy()})
    assert (torch.from_numpy(found) - model(x)).abs().max() <= 2.01 * model.head.scale
    assert "conv2d" in called


@CAPTURES
def test_nothing_is_quantized_twice(capture: str):
    """Also where a program reads the scale off a buffer."""
    model = net()
    register_published([])
    program = export(model, capture, seeded(2, 3, 8, 8))
    assert operators(program).count("QuantizeLinear") == 8


@CAPTURES
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weights", ["per tensor", "per channel"])
def test_published_functions_serve_a_quantized_model(capture: str, bias: bool, weights: str):
    model = net(weights, bias)
    axes = {"x": {0: "n", 2: "h"}}
    called: list[str] = []
    register_published(called)
    program = export(model, capture, seeded(2, 3, 8, 8), dynamic_axes=axes, opset_version=17)
    assert sorted(set(called)) == [
        *("add", "cat", "conv2d", "conv_transpose2d", "hardswish", "linear")
    ]
    step = model.head.scale
    for n, h in ((1, 8), (2, 2), (7, 9)):
        x = seeded(n, 3, h, 8)
        assert (program(x) - model(x)).abs().max() <= 2.01 * step


@CAPTURES
def test_nodes_of_a_runtime_take_the_parts(capture: str):
    """A quantized tensor is (integers, scale, zero point), each of the dtype that kernels of
    ONNX Runtime take; integers alone are a result too."""

    def add(g: Any, qa: Any, qb: Any, scale: Any, zero_point: Any) -> Any:
        (a, a_scale, a_zero), (b, b_scale, b_zero) = map(helper._unpack_tuple, (qa, qb))
        assert (a.type().scalarType(), a_scale.type().scalarType()) == ("Byte", "Float")
        assert a_zero.type().scalarType() == zero_point.type().scalarType() == "Byte"
        operands = (a, a_scale, a_zero, b, b_scale, b_zero, scale, zero_point)
        return g.op("com.microsoft::QLinearAdd", *operands).setType(a.type())

    class Sum(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q = torch.quantize_per_tensor(x, 0.05, 120, torch.quint8)
            return torch.ops.quantized.add(q, q, 0.1, 100).dequantize()

    sardonyx.register_custom_op_symbolic("quantized::add", add, 10)
    program = export(Sum(), capture, seeded(3, 4), dynamic_axes={"x": {0: "n"}})
    assert "QLinearAdd" in operators(program)
    for n in (0, 1, 2, 7):
        x = seeded(n, 4)
        torch.testing.assert_close(program(x), Sum()(x), rtol=0, atol=0.101)


class Activated(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = torch.quantize_per_tensor(x, 0.05, 120, torch.quint8)
        return torch.ops.quantized.sigmoid(q, 0.01, 3).dequantize()


RESULTS = {
    "the scale asked for": lambda g, y, scale, zero: helper.quantize_helper(g, y, scale, zero),
    "another scale": lambda g, y, scale, zero: helper.quantize_helper(
        g, y, g.op("Constant", value_t=torch.tensor(0.004)), zero
    ),
    "other integers": lambda g, y, scale, zero: helper.quantize_helper(
        g, y, scale, g.op("Constant", value_t=torch.tensor(-100, dtype=torch.int8))
    ),
    "a tuple of Python": lambda g, y, scale, zero: (
        g.op("QuantizeLinear", y, scale, zero),
        scale,
        zero,
    ),
    "real numbers": lambda g, y, scale, zero: y,
}


@CAPTURES
@pytest.mark.parametrize("name", RESULTS)
def test_what_a_function_gives_is_what_follows_gets(capture: str, name: str):
    def sigmoid(g: Any, qx: Any, output_scale: Any, output_zero_point: Any) -> Any:
        real = g.op("Sigmoid", helper.dequantize_helper(g, qx)[0])
        return RESULTS[name](g, real, output_scale, output_zero_point)

    sardonyx.register_custom_op_symbolic("quantized::sigmoid", sigmoid, 10)
    program = export(Activated(), capture, seeded(9))
    torch.testing.assert_close(program(seeded(9)), Activated()(seeded(9)), rtol=0, atol=0.0141)
    quantized = operators(program).count("QuantizeLinear")
    assert quantized == (3 if name in ("another scale", "other integers") else 2)


@CAPTURES
def test_quantized_args(capture: str):
    @helper.quantized_args(True, scale=0.01, zero_point=3)
    def sigmoid(g: Any, x: Any, *rest: Any) -> Any:
        return g.op("my::Sigmoid", x).setType(x.type())

    sardonyx.register_custom_op_symbolic("quantized::sigmoid", sigmoid, 10)
    program = export(Activated(), capture, seeded(9))
    assert operators(program) == [
        *("QuantizeLinear", "DequantizeLinear", "Sigmoid", "QuantizeLinear", "DequantizeLinear")
    ]
    assert domains(program) == {"", "my"}


def test_signed_integers_and_channels():
    class Signed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q = torch.quantize_per_tensor(x, 0.05, -7, torch.qint8)
            return torch.ops.quantized.mul(q, q, 0.1, -20).dequantize()

    def mul(g: Any, qa: Any, qb: Any, scale: Any, zero_point: Any) -> Any:
        a, b = (helper.dequantize_helper(g, q)[0] for q in (qa, qb))
        return helper.quantize_helper(g, g.op("Mul", a, b), scale, zero_point)

    sardonyx.register_custom_op_symbolic("quantized::mul", mul, 10)
    program = sardonyx.export(Signed(), seeded(3, 4))
    assert operators(program).count("QuantizeLinear") == 2
    torch.testing.assert_close(program(seeded(3, 4)), Signed()(seeded(3, 4)), rtol=0, atol=0.101)


@CAPTURES
def test_dynamically_quantized_layers_get_real_numbers(capture: str):
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    model = quantization.quantize_dynamic(model, {nn.Linear}, torch.qint8)

    def linear_dynamic(g: Any, x: Any, weight: Any, bias: Any, reduce_range: Any) -> Any:
        integers, scale, zero_point = helper._unpack_tuple(weight)
        assert integers.type().sizes() == [3, 4]
        transposed = g.op("Transpose", integers, perm_i=[1, 0])
        operands = (x, transposed, scale, zero_point, bias)
        return g.op("com.microsoft::DynamicQuantizeMatMul", *operands)

    sardonyx.register_custom_op_symbolic("quantized::linear_dynamic", linear_dynamic, 10)
    program = export(model, capture, seeded(5, 4), dynamic_axes={"input": {0: "n"}})
    assert "DynamicQuantizeMatMul" in operators(program)
    for n in (1, 2, 7):
        torch.testing.assert_close(program(seeded(n, 4)), model(seeded(n, 4)), rtol=0, atol=0.05)


def test_an_embedding():
    model = nn.Sequential(nn.Embedding(10, 4)).eval()
    model.qconfig = quantization.float_qparams_weight_only_qconfig
    model = quantization.convert(quantization.prepare(model))

    def embedding_byte(g: Any, weight: Any, scale: Any, zero_point: Any, indices: Any, *_: Any):
        real = g.op("Cast", weight, to_i=int(ir.DataType.FLOAT))
        rows = g.op("Mul", g.op("Sub", real, zero_point), scale)
        return g.op("Gather", rows, indices)

    sardonyx.register_custom_op_symbolic("quantized::embedding_byte", embedding_byte, 10)
    ids = torch.tensor([[1, 9, 0]])
    program = sardonyx.export(model, ids, capture="trace", optimize=False)
    assert operators(program).count("Gather") == 1
    torch.testing.assert_close(program(ids), model(ids))


@pytest.mark.parametrize("named", ["new", None])
def test_overloads_and_twins(named: str | None):
    """One for an overload, or for all of a name; a fused activation is an operator of its own."""

    class Fused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.quantized.Conv2d(3, 2, 1)
            self.fused = nn.intrinsic.quantized.ConvReLU2d(3, 2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q = torch.quantize_per_tensor(x, 0.05, 120, torch.quint8)
            return self.layer(q).dequantize() + self.fused(q).dequantize()

    called: list[int] = []

    def conv2d(g: Any, qx: Any, weight: Any, bias: Any, *settings: Any) -> Any:
        *_, groups, output_scale, output_zero_point = settings
        called.append(helper._get_const(groups, "i"))
        reals = (helper.dequantize_helper(g, q)[0] for q in (qx, weight))
        made = g.op("Conv", *reals, bias)
        return helper.quantize_helper(g, made, output_scale, output_zero_point)

    name = "quantized::conv2d" + (f".{named}" if named else "")
    sardonyx.register_custom_op_symbolic(name, conv2d, 10)
    model, x = Fused().eval(), seeded(1, 3, 4, 4)
    program = sardonyx.export(model, x)
    assert called == [1]
    torch.testing.assert_close(program(x), model(x), rtol=0, atol=2.01)


def test_what_quantizes_can_be_written_too():
    def quantize(g: Any, self: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
        integers = g.op("my::Quantize", self, scale, zero_point)
        return integers.setType(zero_point.type().with_sizes([9]))

    def dequantize(g: Any, self: Any) -> Any:
        integers, scale, zero_point = helper._unpack_tuple(self)
        return g.op("my::Dequantize", integers, scale, zero_point)

    sardonyx.register_custom_op_symbolic("aten::quantize_per_tensor", quantize, 10)
    sardonyx.register_custom_op_symbolic("aten::dequantize", dequantize, 10)
    program = sardonyx.export(Activated(), seeded(9), capture="trace")
    assert operators(program) == [
        *("Quantize", "DequantizeLinear", "Sigmoid", "QuantizeLinear", "Dequantize")
    ]


def test_a_translation_table():
    onnxscript = pytest.importorskip("onnxscript", reason="these are its functions")
    from onnxscript import opset17 as op

    domain = onnxscript.values.Opset("my", 1)

    @onnxscript.script(domain)
    def scripted(qx, qx_scale, qx_zero_point, output_scale, output_zero_point):
        real = op.Sigmoid(op.DequantizeLinear(qx, qx_scale, qx_zero_point))
        return op.QuantizeLinear(real, output_scale, output_zero_point)

    def recorded(qx, output_scale: float, output_zero_point):
        integers, scale, zero_point = qx
        real = op.Sigmoid(op.DequantizeLinear(integers, scale, zero_point))
        return op.QuantizeLinear(real, output_scale, output_zero_point)

    expected = Activated()(seeded(9))
    for function in (scripted, recorded):
        table = {torch.ops.quantized.sigmoid.default: function}
        program = sardonyx.export(Activated(), seeded(9), custom_translation_table=table)
        torch.testing.assert_close(program(seeded(9)), expected, rtol=0, atol=0.0101)
        assert ("my" in domains(program)) == (function is scripted)
    registry = sardonyx.OnnxRegistry()
    registry.register_op(scripted, "quantized", "sigmoid")
    output = sardonyx.dynamo_export(
        Activated(), seeded(9), export_options=sardonyx.ExportOptions(onnx_registry=registry)
    )
    torch.testing.assert_close(output(seeded(9)), expected, rtol=0, atol=0.0101)


def test_mistakes_are_told():
    def straight(g: Any, qx: Any, *rest: Any) -> Any:
        return g.op("Sigmoid", qx)

    def too_many(g: Any, qx: Any, *rest: Any) -> Any:
        return [g.op("Identity", rest[1]) for _ in range(2)]

    for function, reason in ((straight, "dequantize_helper"), (too_many, "quantize_helper")):
        sardonyx.register_custom_op_symbolic("quantized::sigmoid", function, 10)
        with pytest.raises(sardonyx.SymbolicFunctionError, match=reason) as raised:
            sardonyx.export(Activated(), seeded(9), capture="trace")
        assert "quantized::sigmoid" in str(raised.value)
    sardonyx.register_custom_op_symbolic("quantized::sigmoid", lambda g, *args: None, 10)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="quantized::sigmoid"):
        sardonyx.export(Activated(), seeded(9), capture="trace")


def test_one_for_a_later_opset_is_not_called():
    sardonyx.register_custom_op_symbolic("quantized::sigmoid", lambda g, *args: None, 15)
    program = sardonyx.export(Activated(), seeded(9), opset_version=13)
    torch.testing.assert_close(program(seeded(9)), Activated()(seeded(9)), rtol=0, atol=0.0101)


def test_find_mismatch_looks_into_them():
    """The operator runs in PyTorch, and the function's nodes in ONNX Runtime."""

    def sigmoid(g: Any, qx: Any, output_scale: Any, output_zero_point: Any) -> Any:
        real = helper.dequantize_helper(g, qx)[0]
        return helper.quantize_helper(g, g.op(writes, real), output_scale, output_zero_point)

    sardonyx.register_custom_op_symbolic("quantized::sigmoid", sigmoid, 10)
    options = sardonyx.verification.VerificationOptions(atol=0.0101)
    writes = "Sigmoid"
    find = sardonyx.verification.find_mismatch
    assert not find(Activated(), seeded(9), options=options).has_mismatch()
    writes = "Neg"
    (leaf,) = find(Activated(), seeded(9), options=options).all_mismatch_leaf_graph_info()
    assert leaf.essential_node_kinds() == {"quantized::sigmoid"}


def test_find_mismatch_of_layers_with_packed_parameters():
    model, x = net(), seeded(2, 3, 8, 8)
    called: list[str] = []
    register_published(called)
    options = sardonyx.verification.VerificationOptions(atol=2.01 * model.head.scale)
    assert not sardonyx.verification.find_mismatch(model, x, options=options).has_mismatch()
    assert "conv2d" in called


def test_operators_that_write_are_refused_whatever_is_registered():
    class Writes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q = torch.quantize_per_tensor(x, 0.05, 120, torch.quint8)
            out = torch.quantize_per_tensor(x * 0, 0.1, 100, torch.quint8)
            torch.ops.quantized.add_out(q, q, out)
            return out.dequantize()

    sardonyx.register_custom_op_symbolic("quantized::add_out", lambda g, a, b, out: a, 10)
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="quantized::add_out"):
        sardonyx.export(Writes(), seeded(9), capture="trace")


@pytest.fixture
def doubled_operator() -> Iterator[None]:
    def doubled(qx: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_tensor(qx.dequantize() * 2, 0.1, 60, torch.quint8)

    with torch.library._scoped_library("quantized", "FRAGMENT") as library:
        library.define("doubled(Tensor qx) -> Tensor")
        library.impl("doubled", doubled, "QuantizedCPU")
        yield


@CAPTURES
@pytest.mark.usefixtures("doubled_operator")
def test_an_operator_of_ones_own(capture: str):
    """One that has no form: what it is at the sizes of the example says what its result is."""

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q = torch.quantize_per_tensor(x, 0.05, 120, torch.quint8)
            return torch.ops.quantized.doubled(q).dequantize()

    with pytest.raises(sardonyx.UnsupportedOperatorError, match="quantized::doubled has no ONNX"):
        export(Model(), capture, seeded(9))

    def write(g: Any, qx: Any) -> Any:
        real = helper.dequantize_helper(g, qx)[0]
        return g.op("Add", real, real)

    sardonyx.register_custom_op_symbolic("quantized::doubled", write, 10)
    program = export(Model(), capture, seeded(9))
    torch.testing.assert_close(program(seeded(9)), Model()(seeded(9)), rtol=0, atol=0.101)
    axes = {"x": {0: "n"}}
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="export it with fixed ones"):
        export(Model(), capture, seeded(9), dynamic_axes=axes)
