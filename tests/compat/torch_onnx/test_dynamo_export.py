"""dynamo_export, ExportOptions, ExportOutput, OnnxRegistry and the diagnostics."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, BinaryIO

import onnx
import pytest
import torch

import sardonyx
from sardonyx import ExportOptions, ExportOutput, OnnxRegistry


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, bias: torch.Tensor | None = None) -> dict[str, Any]:
        out = self.linear(x)
        return {"out": out if bias is None else out + bias, "first": (out[0],)}


def test_a_model_with_its_own_arguments(tmp_path: Path) -> None:
    model, x, bias = Model(), torch.randn(3, 4), torch.randn(2)
    output = sardonyx.dynamo_export(model, x, bias=bias)
    assert isinstance(output, ExportOutput)
    output.save(str(tmp_path / "model.onnx"))
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"))
    assert [i.name for i in output.model_proto.graph.input] == ["x", "bias"]
    inputs = output.adapt_torch_inputs_to_onnx(x, bias=bias)
    assert [tuple(i.shape) for i in inputs] == [(3, 4), (2,)]
    expected = output.adapt_torch_outputs_to_onnx(model(x, bias=bias))
    names = [o.name for o in output.model_proto.graph.output]
    found = output.program._run(list(inputs))
    for name, value in zip(names, expected, strict=True):
        torch.testing.assert_close(found[name], value.detach())
    torch.testing.assert_close(output(x, bias=bias)["out"], model(x, bias=bias)["out"].detach())


def test_save_to_a_stream_and_with_a_serializer(tmp_path: Path) -> None:
    class TextSerializer:
        def serialize(self, export_output: ExportOutput, destination: BinaryIO) -> None:
            destination.write(export_output.program.to_text().encode())

    output = sardonyx.dynamo_export(torch.nn.ReLU(), torch.ones(2))
    stream = io.BytesIO()
    output.save(stream)
    assert onnx.load_model_from_string(stream.getvalue()).graph.node[0].op_type == "Relu"
    output.save(tmp_path / "model.txt", serializer=TextSerializer())
    assert "onnx::Relu" in (tmp_path / "model.txt").read_text()
    with pytest.raises(sardonyx.InvalidExportOptionsError, match="serialize"):
        output.save(tmp_path / "model.txt", serializer=object())  # type: ignore[arg-type]


def test_dynamic_shapes_leaves_open_what_the_model_leaves_open() -> None:
    model, x = Model(), torch.randn(3, 4)
    output = sardonyx.dynamo_export(model, x, export_options=ExportOptions(dynamic_shapes=True))
    dims = output.model_proto.graph.input[0].type.tensor_type.shape.dim
    assert dims[0].dim_param and dims[1].dim_value == 4, "4 is the size of the weight"
    other = torch.randn(7, 4)
    torch.testing.assert_close(output(other)["out"], model(other)["out"].detach())


def test_options_of_the_wrong_kind() -> None:
    with pytest.raises(sardonyx.InvalidExportOptionsError, match="dynamic_shapes"):
        ExportOptions(dynamic_shapes="yes")  # type: ignore[arg-type]


def test_op_level_debug_is_a_diagnostic() -> None:
    options = ExportOptions(op_level_debug=True)
    output = sardonyx.dynamo_export(torch.nn.ReLU(), torch.ones(2), export_options=options)
    [diagnostic] = output.diagnostic_context.diagnostics
    assert diagnostic.rule == "verification" and "equal to PyTorch" in diagnostic.message


class Writes(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x + self.count


def test_diagnostics_are_written_as_sarif(tmp_path: Path) -> None:
    output = sardonyx.dynamo_export(Writes(), torch.ones(2))
    output.save_diagnostics(str(tmp_path / "report.sarif"))
    log = json.loads((tmp_path / "report.sarif").read_text())
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    assert run["tool"]["driver"]["name"] == "sardonyx"
    [result] = run["results"]
    assert result["level"] == "note" and "count" in result["message"]["text"]
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    with pytest.raises(sardonyx.InvalidExportOptionsError, match="sarif"):
        output.save_diagnostics(tmp_path / "report.txt")


def test_a_failed_export_has_its_diagnostics(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.to_sparse().to_dense()

    with pytest.raises(sardonyx.OnnxExporterError) as caught:
        sardonyx.dynamo_export(model, torch.ones(2, 2))
    output = caught.value.export_output
    output.save_diagnostics(tmp_path / "failed.sarif")
    [run] = json.loads((tmp_path / "failed.sarif").read_text())["runs"]
    assert run["results"] and all(result["level"] == "error" for result in run["results"])
    assert any("test_dynamo_export.py" in json.dumps(r["locations"]) for r in run["results"])
    with pytest.raises(sardonyx.OnnxExporterError):
        output.save(tmp_path / "model.onnx")


def test_the_registry_knows_the_library() -> None:
    registry = OnnxRegistry()
    assert registry.opset_version == 20
    assert registry.is_registered_op("aten", "add", "Tensor")
    assert registry.is_registered_op("aten", "relu")
    assert not registry.is_registered_op("aten", "no_such_operator")
    assert registry.get_op_functions("aten", "no_such_operator") is None
    with pytest.raises(sardonyx.InvalidExportOptionsError, match="no_such_operator"):
        registry.register_op(lambda x: x, "aten", "no_such_operator")


def test_a_registered_function_is_used() -> None:
    pytest.importorskip("onnxscript", reason="onnxscript functions need onnxscript")
    from tests.compat.torch_onnx.onnx_functions import registered_relu

    registry = OnnxRegistry(opset_version=18)
    registry.register_op(registered_relu, "aten", "relu", "default")
    functions = registry.get_op_functions("aten", "relu")
    assert functions is not None
    assert [f.is_custom for f in functions] == [False, True]
    options = ExportOptions(onnx_registry=registry)
    output = sardonyx.dynamo_export(torch.nn.ReLU(), torch.randn(3), export_options=options)
    assert output.model_proto.opset_import[0].version == 18
    x = torch.randn(3)
    torch.testing.assert_close(output(x), torch.where(x < 0, 2 * x, x))
