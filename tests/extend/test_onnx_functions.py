"""onnxscript functions: in symbolic functions and in translation tables."""

from __future__ import annotations

import operator

import numpy as np
import onnx
import onnx_ir as ir
import onnxscript
import pytest
import torch
from onnxscript import FLOAT
from onnxscript.onnx_opset import opset12, opset15, opset18, opset22

import sardonyx
from sardonyx.errors import InvalidOptionError, SymbolicFunctionError

custom_opset = onnxscript.values.Opset(domain="onnx-script", version=1)
op = opset15


@onnxscript.script(custom_opset)
def Selu(X):
    alpha = 1.67326  # auto wrapped as Constants
    gamma = 1.0507
    alphaX = op.CastLike(alpha, X)
    gammaX = op.CastLike(gamma, X)
    neg = gammaX * (alphaX * op.Exp(X) - alphaX)
    pos = gammaX * X
    zero = op.CastLike(0, X)
    return op.Where(X <= zero, neg, pos)  # noqa: SIM300


@onnxscript.script(custom_opset, default_opset=opset18)
def ScaledElu(x, alpha: float = 1.0):
    return opset18.Elu(x, alpha=alpha)


@onnxscript.script(custom_opset, default_opset=opset18)
def Twice(x):
    return Selu(Selu(x))


@onnxscript.script(custom_opset, default_opset=opset22)
def OfOpset22(x):
    return opset22.Gelu(x)


def custom_selu(g: sardonyx.GraphContext, X):
    return g.onnxscript_op(Selu, X).setType(X.type())


def checked(program):
    onnx.checker.check_model(program.model_proto, full_check=True)
    return program


@pytest.mark.parametrize("capture", ["export", "trace"])
@pytest.mark.parametrize("opset", [17, 18, 20, 23])
def test_a_symbolic_function_calls_one(opset, capture):
    sardonyx.register_custom_op_symbolic(
        symbolic_name="aten::selu", symbolic_fn=custom_selu, opset_version=15
    )
    x = torch.randn(1, 2, 3, 4, requires_grad=True)
    program = checked(
        sardonyx.export(
            torch.nn.SELU(),
            x,
            opset_version=opset,
            capture=capture,
            custom_opsets={"onnx-script": 2},
            rtol=1e-4,
            verify=True,
        )
    )
    (function,) = program.model.functions.values()
    assert (function.domain, function.name) == ("onnx-script", "Selu")
    assert function.opset_imports[""] == opset
    assert program.model.opset_imports == {"": opset, "onnx-script": 2}
    assert [n.op_type for n in program.model.graph] == ["Selu"]


def test_it_is_in_the_file_once():
    sardonyx.register_custom_op_symbolic("aten::selu", custom_selu, 15)
    model = torch.nn.Sequential(torch.nn.SELU(), torch.nn.Linear(3, 3), torch.nn.SELU())
    program = checked(sardonyx.export(model, (torch.randn(2, 3),), rtol=1e-3, verify=True))
    assert len(program.model.functions) == 1
    assert [n.op_type for n in program.model.graph].count("Selu") == 2


@pytest.mark.parametrize(
    "operator", [torch.ops.aten.selu.default, torch.ops.aten.selu, "aten::selu"]
)
def test_a_translation_table(operator):
    program = checked(
        sardonyx.export(
            torch.nn.SELU(),
            (torch.randn(2, 3),),
            custom_translation_table={operator: Selu},
            rtol=1e-4,
            verify=True,
        )
    )
    assert [n.op_type for n in program.model.graph] == ["Selu"]
    assert program.model.opset_imports["onnx-script"] == 1
    assert "Selu" not in str(sardonyx.export(torch.nn.SELU(), (torch.randn(2),)).model.functions)


def test_functions_that_a_function_calls_travel_too():
    program = sardonyx.export(
        torch.nn.SELU(), (torch.randn(2),), custom_translation_table={"aten::selu": Twice}
    )
    onnx.checker.check_model(program.model_proto)
    assert {f.name for f in program.model.functions.values()} == {"Twice", "Selu"}
    selu = torch.nn.SELU()
    x = torch.randn(2)
    torch.testing.assert_close(program(x), selu(selu(x)), rtol=1e-4, atol=1e-5)


def test_attributes_of_a_function_are_arguments_of_the_operator():
    program = checked(
        sardonyx.export(
            torch.nn.ELU(0.25),
            (torch.randn(2, 3),),
            custom_translation_table={torch.ops.aten.elu.default: ScaledElu},
            verify=True,
        )
    )
    (node,) = program.model.graph
    assert node.attributes["alpha"].as_float() == 0.25


def test_a_function_for_a_newer_opset_is_brought_down():
    program = checked(
        sardonyx.export(
            torch.nn.GELU(),
            (torch.randn(2, 3),),
            opset_version=17,
            custom_translation_table={torch.ops.aten.gelu.default: OfOpset22},
            verify=True,
        )
    )
    (function,) = program.model.functions.values()
    assert "Gelu" not in {node.op_type for node in function}


@pytest.mark.parametrize("opset", [17, 20, 23])
def test_python_functions_of_onnxscript_operators(opset):
    def hardswish(self):
        return self * opset18.HardSigmoid(self, alpha=1 / 6, beta=0.5)

    program = checked(
        sardonyx.export(
            torch.nn.Hardswish(),
            (torch.randn(2, 3),),
            opset_version=opset,
            custom_translation_table={torch.ops.aten.hardswish.default: hardswish},
            verify=True,
        )
    )
    assert [n.op_type for n in program.model.graph] == ["HardSigmoid", "Mul"]


def test_a_python_function_with_several_results_and_a_function_inside():
    def topk(self, k, dim=-1, largest=True, sorted=True):
        return opset18.TopK(Selu(self), opset18.Constant(value_ints=[k]), axis=dim)

    program = sardonyx.export(
        lambda x: torch.topk(x, 2),
        (torch.randn(2, 3),),
        custom_translation_table={torch.ops.aten.topk.default: topk},
    )
    x = torch.randn(2, 3)
    expected = torch.topk(torch.nn.functional.selu(x), 2)
    torch.testing.assert_close(program(x)[0], expected[0], rtol=1e-4, atol=1e-5)


def test_symbolic_functions_in_a_table():
    program = sardonyx.export(
        torch.nn.SELU(),
        (torch.randn(2),),
        custom_translation_table={torch.ops.aten.selu.default: lambda g, x: g.op("Selu", x)},
        verify=True,
    )
    assert [n.op_type for n in program.model.graph] == ["Selu"]


def test_an_operator_of_another_library():
    @torch.library.custom_op("function_tests::tripled", mutates_args=())
    def tripled(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    tripled.register_fake(torch.empty_like)

    @onnxscript.script(custom_opset, default_opset=opset18)
    def Tripled(x: FLOAT[...]):
        return x + x + x

    checked(
        sardonyx.export(
            lambda x: tripled(x) - 1,
            (torch.randn(2),),
            custom_translation_table={torch.ops.function_tests.tripled.default: Tripled},
            verify=True,
        )
    )


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ([1], "must be a dict"),
        ({"selu": Selu}, "no operator"),
        ({torch.ops.aten.selu.default: 3}, "no function"),
    ],
)
def test_tables_are_checked(table, told):
    with pytest.raises(InvalidOptionError, match=told):
        sardonyx.export(torch.nn.SELU(), (torch.randn(2),), custom_translation_table=table)


def test_what_is_no_onnxscript_function():
    sardonyx.register_custom_op_symbolic("aten::selu", lambda g, x: g.onnxscript_op(max, x), 9)
    with pytest.raises(SymbolicFunctionError, match="no onnxscript function"):
        sardonyx.export(torch.nn.SELU(), (torch.randn(2),))


def test_a_function_whose_operators_changed_is_refused():
    @onnxscript.script(custom_opset, default_opset=opset12)
    def OldSoftmax(x):
        return opset12.Softmax(x)

    with pytest.raises(sardonyx.UnsupportedOpsetError, match=r"written for opset 12.*opset 13"):
        sardonyx.export(
            torch.nn.ReLU(),
            (torch.randn(2, 3),),
            custom_translation_table={torch.ops.aten.relu.default: OldSoftmax},
        )


def test_operators_of_python_in_a_table_are_a_warning():
    """torch.export has arithmetic of sizes as nodes; transformers brings a floordiv for them."""

    def floordiv(self, other):
        raise AssertionError

    def model(x):
        return x[: x.shape[0] // 2]

    with pytest.warns(sardonyx.OnnxExporterWarning, match="floordiv of sizes"):
        program = sardonyx.export(
            model,
            (torch.randn(5),),
            dynamic_shapes=({0: "n"},),
            custom_translation_table={operator.floordiv: floordiv},
        )
    torch.testing.assert_close(program(torch.arange(9.0)), torch.arange(4.0))


def test_constants_of_onnx_ir_and_onnx():
    def relu(self):
        two = opset18.Constant(value=ir.tensor([2.0], dtype=ir.DataType.FLOAT))
        one = opset18.Constant(value=onnx.numpy_helper.from_array(np.array([1.0], np.float32)))
        return opset18.Add(opset18.Mul(self, two), one)

    program = sardonyx.export(
        torch.nn.ReLU(),
        (torch.randn(3),),
        custom_translation_table={torch.ops.aten.relu.default: relu},
    )
    torch.testing.assert_close(program(torch.arange(3.0)), torch.tensor([1.0, 3.0, 5.0]))
