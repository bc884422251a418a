"""The printed graph has the form the reference shows."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import torch

from sardonyx.errors import SerializeError
from sardonyx.lower.weights import TorchTensor
from sardonyx.options import ExternalData
from sardonyx.serialize.text import to_text, to_text_from_file
from sardonyx.serialize.writer import write_model
from tests.serialize.models import linear, model_of, tensor_value

LINEAR = """\
graph(%x : Float(N, 3)
      %fc.weight : Float(4, 3)
      %fc.bias : Float(4)) {
  %y : Float(N, 4) = onnx::Gemm[transB=1](%x, %fc.weight, %fc.bias), scope: Net/Linear[fc] # my_model.py:57
  return (%y);
}
"""  # noqa: E501


def test_a_graph_as_the_reference_prints_it():
    assert to_text(linear(torch.ones(4, 3), torch.zeros(4))) == LINEAR


def test_a_file_prints_the_same_without_its_weights(tmp_path):
    path = tmp_path / "m.onnx"
    write_model(linear(torch.ones(4, 3), torch.zeros(4)), path, external_data=ExternalData(0))
    (tmp_path / "m.onnx.data").unlink()
    text = to_text_from_file(path)
    assert text == LINEAR


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    for name in ("missing.onnx", "bad.onnx"):
        with pytest.raises(SerializeError, match=f"cannot read .*{name}"):
            to_text_from_file(tmp_path / name)


def line_of(node: ir.Node, *inputs: ir.Value) -> str:
    graph = ir.Graph(inputs, node.outputs, nodes=[node], opset_imports={"": 20}, name="g")
    return to_text(model_of(graph)).splitlines()[max(len(inputs), 1)].strip()


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (ir.AttrInt64("a", 1), "a=1"),
        (ir.AttrInt64s("a", [1, -1]), "a=[1, -1]"),
        (ir.AttrInt64s("a", []), "a=[]"),
        (ir.AttrFloat32("a", 1.0), "a=1"),
        (ir.AttrFloat32("a", float(np.float32(0.1))), "a=0.1"),
        (ir.AttrFloat32("a", float(np.float32(1.2345678))), "a=1.23456776"),
        (ir.AttrFloat32s("a", [1e-5, float("inf")]), "a=[1e-05, inf]"),
        (ir.AttrString("a", 'say "hi"'), r'a="say \"hi\""'),
        (ir.AttrStrings("a", ["x", "y"]), 'a=["x", "y"]'),
        (ir.AttrTensor("a", TorchTensor(torch.tensor(9216))), "a={9216}"),
        (ir.AttrTensor("a", TorchTensor(torch.tensor([1e300], dtype=torch.float64))), "a={1e+300}"),
        (ir.AttrTensor("a", TorchTensor(torch.tensor([True, False]))), "a={True, False}"),
        (ir.AttrTensor("a", TorchTensor(torch.zeros(9))), "a=<Tensor>"),
        (ir.AttrTensor("a", TorchTensor(torch.empty(2, device="meta"))), "a=<Tensor>"),
        (
            ir.AttrTensor("a", ir.StringTensor([b"x"], shape=ir.Shape([1]))),
            'a={"x"}',
        ),
        (ir.RefAttr("a", "alpha", ir.AttributeType.FLOAT), "a=@alpha"),
    ],
)
def test_attributes(attribute, text):
    node = ir.Node("", "Op", [], [attribute], outputs=[tensor_value("y")])
    assert line_of(node) == f"%y : Float() = onnx::Op[{text}]()"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (tensor_value("v", 2, "batch", None), "Float(2, batch, *)"),
        (tensor_value("v", dtype=ir.DataType.INT64), "Long()"),
        (tensor_value("v", 1, dtype=ir.DataType.FLOAT16), "Half(1)"),
        (tensor_value("v", 1, dtype=ir.DataType.BFLOAT16), "BFloat16(1)"),
        (tensor_value("v", 1, dtype=ir.DataType.UINT8), "Byte(1)"),
        (tensor_value("v", 1, dtype=ir.DataType.COMPLEX64), "ComplexFloat(1)"),
        (ir.Value(name="v"), "Dynamic"),
        (ir.Value(name="v", type=ir.TensorType(ir.DataType.FLOAT)), "Dynamic"),
        (
            ir.Value(
                name="v",
                type=ir.SequenceType(ir.TensorType(ir.DataType.FLOAT)),
                shape=ir.Shape([2]),
            ),
            "Float(2)[]",
        ),
        (
            ir.Value(
                name="v",
                type=ir.OptionalType(ir.TensorType(ir.DataType.BOOL)),
                shape=ir.Shape([]),
            ),
            "Optional[Bool()]",
        ),
    ],
)
def test_types(value, text):
    node = ir.Node("my.domain", "Op", [], outputs=[value])
    assert line_of(node) == f"%v : {text} = my.domain::Op()"


def test_outputs_and_inputs_that_are_not_there():
    x = tensor_value("x", 2)
    outputs = [tensor_value("a", 1), ir.Value(name=""), tensor_value("b", 1)]
    node = ir.Node("", "Op", [x, None, x], outputs=outputs)
    graph = ir.Graph([x], [outputs[0]], nodes=[node], opset_imports={"": 20}, name="g")
    assert "%a : Float(1), %b : Float(1) = onnx::Op(%x, None, %x)\n" in to_text(model_of(graph))


def test_subgraphs_and_functions_are_blocks():
    x, y = tensor_value("x", 2), tensor_value("y", 2)
    cond = tensor_value("c", dtype=ir.DataType.BOOL)
    branches = []
    for name, op_type in (("then_branch", "Neg"), ("else_branch", "Abs")):
        out = tensor_value(name[:4], 2)
        inner = ir.Node("", op_type, [x], outputs=[out])
        branches.append(ir.AttrGraph(name, ir.Graph([], [out], nodes=[inner])))
    node = ir.Node("", "If", [cond], branches, outputs=[y])
    graph = ir.Graph([x, cond], [y], nodes=[node], opset_imports={"": 20}, name="g")
    a, b = ir.Value(name="a"), ir.Value(name="b")
    function = ir.Function(
        "local",
        "F",
        graph=ir.Graph([a], [b], nodes=[ir.Node("", "Relu", [a], outputs=[b])]),
        attributes=[ir.AttrFloat32("alpha", 1.0)],
    )
    assert (
        to_text(model_of(graph, functions=[function]))
        == """\
graph(%x : Float(2)
      %c : Bool()) {
  %y : Float(2) = onnx::If(%c)
    else_branch = graph() {
      %else : Float(2) = onnx::Abs(%x)
      return (%else);
    }
    then_branch = graph() {
      %then : Float(2) = onnx::Neg(%x)
      return (%then);
    }
  return (%y);
}

function local::F[alpha](%a : Dynamic) {
  %b : Dynamic = onnx::Relu(%a)
  return (%b);
}
"""
    )
