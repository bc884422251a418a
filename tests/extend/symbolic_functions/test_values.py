"""What a symbolic function can ask of the values it gets."""

from __future__ import annotations

import pytest
import torch

import sardonyx
from sardonyx import symbolic_helper as helper


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 3))

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight)


def asked(question, capture="export", **options):
    """What `question(g, input, weight, bias)` answers while the model is exported."""
    answers = []

    def symbolic(g, input, weight, bias):
        answers.append(question(g, input, weight, bias))
        return g.op("MatMul", input, g.op("Transpose", weight, perm_i=[1, 0]))

    sardonyx.register_custom_op_symbolic("aten::linear", symbolic, 9)
    sardonyx.export(Model(), (torch.randn(2, 3),), capture=capture, verify=True, **options)
    return answers[0]


CAPTURES = pytest.mark.parametrize("capture", ["export", "trace"])


@CAPTURES
def test_types(capture):
    def question(g, x, weight, bias):
        type_ = x.type()
        return (
            type_.kind(), type_.sizes(), type_.dim(), type_.scalarType(), type_.dtype(),
            type_.varyingSizes(), type_.strides(), x.isCompleteTensor(), str(type_),
        )  # fmt: skip

    assert asked(question, capture) == (
        "TensorType", [2, 3], 2, "Float", torch.float32, [2, 3], [3, 1], True, "Float(2, 3)",
    )  # fmt: skip


@CAPTURES
def test_dynamic_sizes(capture):
    def question(g, x, weight, bias):
        return x.type().sizes(), x.type().varyingSizes(), x.type().dim(), x.isCompleteTensor()

    options = {"input_names": ["x"], "dynamic_axes": {"x": {0: "batch"}}}
    assert asked(question, capture, **options) == (None, [None, 3], 2, False)


@CAPTURES
def test_none_is_a_value(capture):
    def question(g, x, weight, bias):
        node = bias.node()
        return node.mustBeNone(), node.kind(), bias.type().kind(), helper._is_none(bias)

    assert asked(question, capture) == (True, "prim::Constant", "NoneType", True)


@CAPTURES
def test_parameters_and_nodes(capture):
    def question(g, x, weight, bias):
        y = g.op("Elu", x, alpha_f=0.5)
        (out,) = y.node().outputs()
        assert out is y
        assert [use.user.kind() for use in x.uses()] == ["onnx::Elu"]
        assert y.node().input() is x
        return (
            weight.node().kind(), weight.debugName(), weight.requiresGrad(), y.node().kind(),
            y.node()["alpha"], y.node().f("alpha"), y.node().attributeNames(),
        )  # fmt: skip

    assert asked(question, capture) == (
        "prim::Param", "weight", True, "onnx::Elu", 0.5, 0.5, ["alpha"],
    )  # fmt: skip


def test_set_type():
    def question(g, x, weight, bias):
        y = g.op("my::Unknown", x)
        unknown = y.type().scalarType(), y.type().sizes(), y.type().dim()
        assert y.setType(x.type().with_sizes([4, 5]).with_dtype(torch.int64)) is y
        return unknown, y.type().scalarType(), y.type().sizes()

    assert asked(question) == ((None, None, None), "Long", [4, 5])


def test_types_of_what_it_writes():
    def question(g, x, weight, bias):
        shape = g.op("Shape", x)
        picked = g.op("Gather", x, torch.tensor([0, 1, 1]), axis_i=1)
        return [str(v.type()) for v in (shape, picked, g.op("Greater", x, 0))]

    assert asked(question) == ["Long(2)", "Float(2, 3)", "Bool(2, 3)"]


def test_the_original_node():
    def question(g, x, weight, bias):
        node = g.original_node
        return node.kind(), node.inputsSize(), str(node.type()), node.schema().split("(")[0]

    assert asked(question) == ("aten::linear", 3, "Float(2, 3)", "aten::linear")
