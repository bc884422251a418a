"""Calls of the former exporters, word for word."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest
import torch

import sardonyx

MODEL, X = torch.nn.Linear(4, 3), torch.ones(2, 4)


def test_the_pretty_string_by_the_places_of_2_1() -> None:
    text = sardonyx.export_to_pretty_string(
        MODEL,
        (X,),
        True,  # export_params
        False,  # verbose
        sardonyx.TrainingMode.EVAL,
        ["x"],
        ["y"],
        sardonyx.OperatorExportTypes.ONNX,
        None,  # export_type
        False,  # google_printer
        18,  # opset_version
        None,  # keep_initializers_as_inputs
        None,  # custom_opsets
        True,  # add_node_names
        True,  # do_constant_folding
        {"x": {0: "n"}},
    )
    assert "%x : Float(n, 4)" in text
    assert "%y" in text


def test_the_pretty_string_by_the_places_of_1_x() -> None:
    text = sardonyx.export_to_pretty_string(MODEL, X, "unused.onnx", True, False, None, ["x"])
    assert "%x : Float(2, 4)" in text
    assert not Path("unused.onnx").exists()
    assert sardonyx.export_to_pretty_string(MODEL, X, f=None, input_names=["x"]) == text


def test_options_of_the_pretty_string_that_have_no_meaning_are_explained() -> None:
    with pytest.warns(sardonyx.OnnxExporterWarning, match="google_printer"):
        sardonyx.export_to_pretty_string(MODEL, X, google_printer=True)
    with pytest.raises(sardonyx.InvalidOptionError, match="verbose is given twice"):
        sardonyx.export_to_pretty_string(MODEL, X, True, False, verbose=False)


TYPE, EVAL = sardonyx.OperatorExportTypes.ONNX, sardonyx.TrainingMode.EVAL
NAMES, AXES = (["x"], ["y"]), {"x": {0: "n"}}


@pytest.mark.parametrize(
    "options",
    [
        (True, False, False, *NAMES, False, False, None, 17, True, False, None, True, AXES, None),
        (True, False, EVAL, *NAMES, TYPE, 17, True, True, None, True, AXES, None, None, True, None),
        (True, False, EVAL, *NAMES, TYPE, 17, True, AXES, None, None, False, True),
    ],
    ids=["1.x", "1.10", "2.1"],
)
def test_all_options_by_their_places(options: tuple[object, ...], tmp_path: Path) -> None:
    with sardonyx.installed():
        torch.onnx.export(MODEL, X, str(tmp_path / "model.onnx"), *options)
    model = onnx.load(tmp_path / "model.onnx")
    (given,), (found,) = model.graph.input, model.graph.output
    assert (given.name, found.name) == ("x", "y")
    assert given.type.tensor_type.shape.dim[0].dim_param == "n"
    assert model.opset_import[0].version == 17


def test_more_options_than_there_are_places() -> None:
    with sardonyx.installed(), pytest.raises(sardonyx.InvalidOptionError, match="by their place"):
        torch.onnx.export(MODEL, X, None, *[None] * 20)  # type: ignore[misc]


@pytest.mark.parametrize(
    "option, domain", [("aten", "org.pytorch.aten"), ("export_raw_ir", "aten")]
)
def test_export_types_by_their_former_names(option: str, domain: str) -> None:
    with sardonyx.installed():
        program = torch.onnx.export(torch.nn.ReLU(), X, **{option: True})
    (node,) = program.model.graph
    assert node.domain == domain


def test_private_names_that_programs_call(tmp_path: Path) -> None:
    path = str(tmp_path / "model.onnx")
    with sardonyx.installed():
        from torch.onnx import _type_utils  # type: ignore[attr-defined]
        from torch.onnx._internal import jit_utils  # type: ignore[attr-defined]

        torch.onnx._export(MODEL, X, path, export_params=True)  # type: ignore[attr-defined]
        assert onnx.load(path).producer_name == "sardonyx"
        with pytest.warns(sardonyx.OnnxExporterWarning, match="example_outputs"):
            torch.onnx.utils._export(MODEL, X, path, example_outputs=MODEL(X))
        assert _type_utils.JitScalarType is sardonyx.JitScalarType
        assert jit_utils.GraphContext is sardonyx.GraphContext
        assert torch.onnx.SymbolicContext is sardonyx.SymbolicContext  # type: ignore[attr-defined]
    assert not hasattr(torch.onnx, "_export")
    assert "torch.onnx._type_utils" not in sys.modules


def test_functions_of_a_registry_that_build_on_those_of_an_opset() -> None:
    with sardonyx.installed():
        from torch.onnx import symbolic_opset9 as opset9
        from torch.onnx.symbolic_registry import (  # type: ignore[import-not-found]
            is_registered_op,
            register_op,
        )

        def elu(g, input, alpha, scale, input_scale):  # type: ignore[no-untyped-def]
            positive = opset9.relu(g, input)
            negative = opset9.expm1(g, opset9.clamp(g, input, None, 0))
            return g.op("Add", positive, opset9.mul(g, negative, alpha))

        assert is_registered_op("elu", "", 11)
        assert not is_registered_op("elu", "mydomain", 11)
        register_op("elu", elu, "", 11)
        program = torch.onnx.export(torch.nn.ELU(0.5), (X - 2,), opset_version=17, verify=True)
    assert "Elu" not in [node.op_type for node in program.model.graph]
