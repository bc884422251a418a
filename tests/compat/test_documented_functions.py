"""The "Functions" and "Classes" of the references: what each does, not only that it is there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import sardonyx
from sardonyx.verification import GraphInfo, OnnxBackend, VerificationOptions, find_mismatch

X = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
CAPTURES = pytest.mark.parametrize("capture", ["export", "trace"])


def operators(program: sardonyx.ONNXProgram) -> list[str]:
    return [node.op_type for node in program.model.graph if node.op_type != "Constant"]


# -- register_custom_op_symbolic, unregister_custom_op_symbolic ------------------------------------


def test_a_function_serves_from_its_opset_up_to_that_of_another():
    for opset, name in ((9, "A"), (13, "B")):
        write = lambda g, self, name=name: g.op(f"my::{name}", self)  # noqa: E731
        sardonyx.register_custom_op_symbolic("aten::relu", write, opset)
    for opset, name in ((9, "A"), (12, "A"), (13, "B"), (20, "B")):
        program = sardonyx.export(nn.ReLU(), X, opset_version=opset)
        assert operators(program) == [name]
    sardonyx.unregister_custom_op_symbolic("aten::relu", 13)
    assert operators(sardonyx.export(nn.ReLU(), X, opset_version=20)) == ["A"]
    sardonyx.unregister_custom_op_symbolic("aten::relu", 9)
    assert operators(sardonyx.export(nn.ReLU(), X)) == ["Relu"]
    sardonyx.unregister_custom_op_symbolic("aten::relu", 9)  # nothing is left to take back


@pytest.mark.parametrize("name", ["relu", "aten:relu", "onnx::Relu", "prim::If", "1a::b", ""])
def test_names_that_are_none(name: str):
    with pytest.raises(sardonyx.OnnxExporterError, match=r"is no name|not open"):
        sardonyx.register_custom_op_symbolic(name, lambda g: None, 9)


# -- select_model_mode_for_export, set_training, is_in_onnx_export ---------------------------------


def test_modes_are_those_of_every_module_and_come_back():
    model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(3)).train()
    model[1].eval()

    def modes() -> list[bool]:
        return [module.training for module in model.modules()]

    before = modes()
    with sardonyx.select_model_mode_for_export(model, sardonyx.TrainingMode.EVAL):
        assert modes() == [False, False, False]
    assert modes() == before
    with sardonyx.select_model_mode_for_export(model, sardonyx.TrainingMode.PRESERVE):
        assert modes() == before
    with pytest.raises(ZeroDivisionError), sardonyx.set_training(model, True):
        assert modes() == [True, True, True]
        _ = 1 / 0
    assert modes() == before
    with sardonyx.set_training(model, None):
        assert modes() == before


@CAPTURES
def test_is_in_onnx_export_decides_what_a_model_computes(capture: str):
    def model(x: torch.Tensor) -> torch.Tensor:
        both = sardonyx.is_in_onnx_export() and torch.onnx.is_in_onnx_export()
        return x + 1 if both else x

    program = sardonyx.export(model, X, capture=capture)
    torch.testing.assert_close(program(X), X + 1)
    assert not sardonyx.is_in_onnx_export() and not torch.onnx.is_in_onnx_export()
    with pytest.raises(sardonyx.CaptureError, match="ZeroDivisionError"):
        sardonyx.export(lambda x: x / (1 // 0), X, capture=capture)
    assert not sardonyx.is_in_onnx_export() and not torch.onnx.is_in_onnx_export()


# -- enable_log, disable_log -----------------------------------------------------------------------


def test_the_log_of_a_function_that_gives_up(capsys: pytest.CaptureFixture[str]):
    def relu(g: Any, self: Any) -> Any:
        return sardonyx.symbolic_helper._unimplemented("relu", "a reason of mine")

    sardonyx.register_custom_op_symbolic("aten::relu", relu, 9)
    for switch, logs in ((sardonyx.enable_log, True), (sardonyx.disable_log, False)):
        switch()
        with pytest.raises(sardonyx.UnsupportedOperatorError, match="a reason of mine"):
            sardonyx.export(nn.ReLU(), X)
        said = "".join(capsys.readouterr())
        assert ("capture: " in said) == logs
        assert not logs or "relu because a reason of mine is not supported" in said


# -- verification ----------------------------------------------------------------------------------


def model_and_wrong_function() -> nn.Module:
    """Its activation is written as another."""
    sardonyx.register_custom_op_symbolic("aten::gelu", lambda g, x, approximate: g.op("Neg", x), 9)
    return nn.Sequential(nn.Linear(3, 3), nn.GELU(), nn.Linear(3, 2)).eval()


def test_find_mismatch_finds_the_operator(capsys: pytest.CaptureFixture[str]):
    model = model_and_wrong_function()
    info = find_mismatch(model, (X,), opset_version=17)
    assert isinstance(info, GraphInfo) and info.has_mismatch()
    (leaf,) = info.all_mismatch_leaf_graph_info()
    assert leaf.essential_node_kinds() == {"aten::gelu"} and leaf.essential_node_count() == 1
    assert info.find_partition(leaf.id) is leaf
    info.pretty_print_tree()
    leaf.pretty_print_mismatch(graph=True)
    printed = capsys.readouterr().out
    assert "aten::gelu" in printed and "onnx::Neg" in printed


def test_find_mismatch_finds_nothing_where_all_is_right():
    model = nn.Sequential(nn.Linear(3, 3), nn.GELU()).eval()
    info = find_mismatch(model, (X,), options=VerificationOptions(backend=OnnxBackend.REFERENCE))
    assert not info.has_mismatch() and info.all_mismatch_leaf_graph_info() == []


@pytest.mark.parametrize(
    ("options", "differs"),
    [
        ({}, True),
        ({"atol": 100.0}, False),
        ({"rtol": 1e6}, False),
        ({"acceptable_error_percentage": 1.0}, False),
    ],
)
def test_verification_options_say_what_differs(options: dict[str, Any], differs: bool):
    model = model_and_wrong_function()
    info = find_mismatch(model, (X,), options=VerificationOptions(**options))
    assert info.has_mismatch() == differs


def test_a_repro_is_a_test_of_onnx(tmp_path):
    (leaf,) = find_mismatch(model_and_wrong_function(), (X,)).all_mismatch_leaf_graph_info()
    folder = leaf.export_repro(tmp_path, name="gelu")
    assert {"model.onnx", "test_data_set_0"} <= {p.name for p in (tmp_path / folder).iterdir()}


# -- ExportOptions, OnnxRegistry, OnnxExporterError ------------------------------------------------


def test_the_opset_of_a_registry_is_that_of_the_file():
    options = sardonyx.ExportOptions(onnx_registry=sardonyx.OnnxRegistry(opset_version=15))
    output = sardonyx.dynamo_export(nn.ReLU(), X, export_options=options)
    assert {o.domain: o.version for o in output.model_proto.opset_import}[""] == 15


def test_functions_of_a_registry_are_listed_the_last_one_last():
    registry = sardonyx.OnnxRegistry()
    assert registry.get_op_functions("aten", "no_such_operator") is None
    own = registry.get_op_functions("aten", "relu") or []
    assert len(own) == 1 and not own[0].is_custom
    registry.register_op(lambda self: self, "aten", "relu")
    listed = registry.get_op_functions("aten", "relu") or []
    assert [function.is_custom for function in listed] == [False, True]
    assert listed[-1].op_full_name == "aten::relu"


def test_an_error_holds_what_was_found_until_then(tmp_path):
    """'OnnxExporterError: raised when an ONNX exporter error occurs', with its `export_output`."""

    class Sparse(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to_sparse().to_dense()

    with pytest.raises(sardonyx.OnnxExporterError) as raised:
        sardonyx.dynamo_export(Sparse(), X)
    output = raised.value.export_output
    assert output is not None
    output.save_diagnostics(tmp_path / "why.sarif")
    assert "to_sparse" in (tmp_path / "why.sarif").read_text()
    with pytest.raises(sardonyx.OnnxExporterError):
        output.save(tmp_path / "model.onnx")
