import sys
import tempfile

import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import helper

import sardonyx
from sardonyx.errors import MissingDependencyError, NotRunnableError, VerificationError
from sardonyx.lower.values import TORCH_TO_ONNX
from sardonyx.verify import onnxruntime_session
from sardonyx.verify.onnxruntime_session import Session


def identity_model(dtype):
    element = int(TORCH_TO_ONNX[dtype])
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "identity",
        [helper.make_tensor_value_info("x", element, ["n", 3])],
        [helper.make_tensor_value_info("y", element, ["n", 3])],
    )
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def affine_model():
    return onnx.parser.parse_model(
        """
        <ir_version: 10, opset_import: ["": 21]>
        affine (float[n, 2] x, float[n, 2] z) => (float[n, 2] y, bool[n, 2] positive)
        <float[2] weight = {2.0, 3.0}, float zero = {0.0}>
        {
            scaled = Mul (x, weight)
            y = Add (scaled, z)
            positive = Greater (y, zero)
        }
        """
    )


@pytest.mark.parametrize(
    "dtype",
    [
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "int64",
        "int8",
        "uint16",
        "uint64",
        "bool",
    ],
)
@pytest.mark.parametrize("rows", [0, 2])
def test_tensors_of_every_dtype_go_through_unchanged(dtype, rows):
    dtype = getattr(torch, dtype)
    session = Session(ir.from_proto(identity_model(dtype)))
    x = torch.arange(rows * 3).reshape(rows, 3).to(dtype)
    y = session.run({"x": x})["y"]
    assert y.dtype == dtype
    assert y.shape == x.shape
    assert torch.equal(y.view(torch.uint8), x.view(torch.uint8))


def test_inputs_and_outputs_are_named(tmp_path):
    onnx.save(affine_model(), tmp_path / "affine.onnx")
    session = Session(tmp_path / "affine.onnx")
    assert session.input_names == ("x", "z")
    assert session.output_names == ("y", "positive")
    # A transposed, grad-requiring input: neither contiguous nor plain.
    x = torch.tensor([[1.0, -1.0], [0.5, -2.0]], requires_grad=True).t()
    outputs = session.run({"x": x, "z": torch.zeros(2, 2)})
    assert torch.equal(outputs["y"], x.detach() * torch.tensor([2.0, 3.0]))
    assert torch.equal(outputs["positive"], outputs["y"] > 0)


def test_results_outlive_the_session():
    session = Session(ir.from_proto(affine_model()))
    y = session.run({"x": torch.ones(2, 2), "z": torch.ones(2, 2)})["y"]
    del session
    assert y.tolist() == [[3.0, 4.0], [3.0, 4.0]]


def test_large_models_reach_the_runtime_through_a_folder_that_goes_with_the_session(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(onnxruntime_session, "IN_MEMORY_LIMIT", 4)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    session = Session(ir.from_proto(affine_model()))
    assert len(list(tmp_path.iterdir())) == 1
    y = session.run({"x": torch.ones(1, 2), "z": torch.zeros(1, 2)})["y"]
    assert y.tolist() == [[2.0, 3.0]]
    del session
    assert not list(tmp_path.iterdir())


def test_missing_and_unknown_inputs_are_named():
    session = Session(ir.from_proto(affine_model()))
    with pytest.raises(VerificationError, match=r"missing\s+z\n\s+unknown\s+q"):
        session.run({"x": torch.ones(1, 2), "q": torch.ones(1, 2)})


def test_a_failing_run_says_with_which_inputs():
    session = Session(ir.from_proto(affine_model()))
    with pytest.raises(VerificationError, match=r"x: float32\[2, 2\]"):
        session.run({"x": torch.ones(2, 2), "z": torch.zeros(3, 2)})


def test_a_model_the_runtime_refuses_says_so(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"no protobuf")
    with pytest.raises(NotRunnableError, match=r"cannot load the model[\s\S]*--no-verify"):
        Session(tmp_path / "broken.onnx")


def test_without_onnxruntime_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependencyError, match="pip install onnxruntime"):
        Session(ir.from_proto(affine_model()))


class OfTransposed(torch.nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.linear = torch.nn.Linear(16, 8, dtype=dtype)

    def forward(self, x):
        return self.linear(x.transpose(0, 1))


@pytest.mark.parametrize(
    ("dtype", "axes"), [(torch.float16, {"x": {0: "b", 1: "t"}}), (torch.bfloat16, {})]
)
def test_halves_that_onnx_runtime_s_optimizers_crash_on(dtype, axes):
    x = torch.randn(2, 5, 16).to(dtype)
    program = sardonyx.export(OfTransposed(dtype), (x,), dynamic_axes=axes, verify=True)
    assert program(x).shape == (5, 2, 8)
