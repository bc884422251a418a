"""install(): programs that call PyTorch's exporter need no change."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

import sardonyx
from tests.plugins import torchvision_reference


def test_export_is_ours_and_then_pytorchs_again(tmp_path: Path) -> None:
    importlib.import_module("torch.onnx.operators")  # which PyTorch's compiler imports
    before = dict(vars(torch.onnx))
    modules = {name: sys.modules.get(f"torch.onnx.{name}") for name in ("utils", "symbolic_helper")}
    with sardonyx.installed():
        torch.onnx.export(
            torch.nn.ReLU(),
            torch.ones(2),
            str(tmp_path / "model.onnx"),
            input_names=["x"],
            training=torch.onnx.TrainingMode.EVAL,
            operator_export_type=torch.onnx.OperatorExportTypes.ONNX,
        )
        from torch.onnx import JitScalarType, utils

        assert JitScalarType is sardonyx.JitScalarType
        assert importlib.import_module("torch.onnx.verification") is sardonyx.verification
        assert utils.unconvertible_ops(torch.nn.ReLU(), torch.ones(2))[1] == []
        output = torch.onnx.dynamo_export(torch.nn.ReLU(), torch.ones(2))  # type: ignore[attr-defined]
        assert isinstance(output, sardonyx.ExportOutput)
    assert onnx.load(tmp_path / "model.onnx").producer_name == "sardonyx"
    assert dict(vars(torch.onnx)) == before
    for name, module in modules.items():
        assert sys.modules.get(f"torch.onnx.{name}") is module


def test_enums_of_pytorch_are_understood() -> None:
    mode, kind = torch.onnx.TrainingMode.TRAINING, torch.onnx.OperatorExportTypes.ONNX
    with sardonyx.installed():
        program = torch.onnx.export(
            torch.nn.Dropout(), torch.ones(8), training=mode, operator_export_type=kind
        )
    assert "Dropout" in [node.op_type for node in program.model.graph]


def test_the_old_places_of_arguments() -> None:
    model, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    with sardonyx.installed():
        program = torch.onnx.export(model, x, None, True, False, None, ["x"], ["y"])
    assert [v.name for v in program.model.graph.inputs] == ["x"]
    assert [v.name for v in program.model.graph.outputs] == ["y"]


@pytest.mark.parametrize(
    "option",
    [
        {"fallback": True},
        {"report": True},
        {"profile": True},
        {"artifacts_dir": "there"},
        {"example_outputs": torch.ones(2)},
        {"_retain_param_name": False},
    ],
    ids=lambda option: next(iter(option)),
)
def test_options_of_the_other_exporter_are_explained(option: dict[str, object]) -> None:
    with (
        sardonyx.installed(),
        pytest.warns(sardonyx.OnnxExporterWarning, match=next(iter(option))),
    ):
        torch.onnx.export(torch.nn.ReLU(), torch.ones(2), **option)


def test_options_that_ask_for_what_is_done_anyway() -> None:
    with sardonyx.installed():
        torch.onnx.export(
            torch.nn.ReLU(), torch.ones(2), dynamo=True, verbose=None, enable_onnx_checker=True
        )
        with pytest.raises(TypeError):
            torch.onnx.export(torch.nn.ReLU(), torch.ones(2), no_such_option=1)


def test_install_and_uninstall_twice() -> None:
    before = torch.onnx.export
    sardonyx.install()
    sardonyx.install()
    with sardonyx.installed():
        pass
    assert torch.onnx.export is not before, "the block leaves installed what was"
    sardonyx.uninstall()
    assert torch.onnx.export is before
    sardonyx.uninstall()


def test_a_script_is_run(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("import torch\nmodel = torch.nn.ReLU()\n")
    (tmp_path / "script.py").write_text(
        textwrap.dedent(
            """
            import sys
            import torch
            from neighbour import model

            if __name__ == "__main__":
                torch.onnx.export(model, torch.ones(2), sys.argv[1])
                print(sys.argv[2:])
            """
        )
    )
    run = subprocess.run(
        [sys.executable, "-m", "sardonyx", "run", "script.py", "out.onnx", "--flag", "-x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "['--flag', '-x']"
    assert onnx.load(tmp_path / "out.onnx").producer_name == "sardonyx"


@pytest.mark.parametrize("as_lists", [False, True])
def test_labels_in_dynamic_axes_that_do_not_hold_are_warnings(as_lists: bool) -> None:
    class Fixed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(2, 6, -1) + 1

    axes: Any = {"x": {0: "batch", 2: "n"}, "nothing": {0: "batch"}, "y": {0: "batch", 2: "n"}}
    if as_lists:
        axes = {name: list(dims) for name, dims in axes.items()}
    options: dict[str, Any] = {"input_names": ["x"], "output_names": ["y"], "dynamic_axes": axes}
    x = torch.randn(2, 6, 3)
    with sardonyx.installed(), pytest.warns(sardonyx.OnnxExporterWarning) as shown:
        program: Any = torch.onnx.export(Fixed(), (x,), **options)
    said = [str(warning.message) for warning in shown]
    assert sum(text.startswith("dynamic_axes: ") for text in said) == len(said) == 3
    (value,) = program.model.graph.inputs
    assert value.shape[0] == 2 and not isinstance(value.shape[2], int)
    other = torch.randn(2, 6, 5)
    torch.testing.assert_close(program(other), Fixed()(other))
    with pytest.raises(sardonyx.DynamicDimError):
        sardonyx.export(Fixed(), (x,), **options)


def test_a_size_of_one_that_the_model_treats_specially_is_fixed_with_a_warning() -> None:
    class Decodes(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.shape[1] == 1 else x.cumsum(1)

    x, axes = torch.randn(2, 1), {"x": {0: "batch", 1: "sequence"}}
    with sardonyx.installed(), pytest.warns(sardonyx.OnnxExporterWarning, match="specially"):
        program: Any = torch.onnx.export(Decodes(), (x,), input_names=["x"], dynamic_axes=axes)
    other = torch.randn(5, 1)
    torch.testing.assert_close(program(other), other * 2)
    assert program.model.graph.inputs[0].shape[1] == 1


def test_an_unrolled_dim_is_fixed_to_the_example() -> None:
    class Unrolls(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([x[i] * i for i in range(x.shape[0])])

    axes = {"x": {0: "batch"}}
    with (
        sardonyx.installed(),
        pytest.warns(sardonyx.OnnxExporterWarning, match="the model fixes it to 1$"),
    ):
        torch.onnx.export(Unrolls(), (torch.ones(1, 2),), input_names=["x"], dynamic_axes=axes)


def test_programs_that_look_for_options_find_them() -> None:
    with sardonyx.installed():
        found = inspect.signature(torch.onnx.export).parameters
    assert {"dynamo", "dynamic_shapes", "external_data", "optimize", "f"} <= found.keys()


def test_functions_of_a_package_for_its_own_operators_give_way_to_ours() -> None:
    """torchvision registers its own where it is imported after install()."""
    torchvision_reference.register()

    def select(g: Any, boxes: Any, scores: Any, iou_threshold: Any) -> Any:
        raise AssertionError

    class Model(torch.nn.Module):
        def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            return torch.ops.torchvision.nms(boxes, scores, 0.5)

    boxes = torch.tensor([[0.0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]])
    args = (boxes, torch.tensor([0.5, 0.9, 0.1]))
    with sardonyx.installed():
        torch.onnx.register_custom_op_symbolic("torchvision::nms", select, 11)
        try:
            with pytest.raises(sardonyx.SymbolicFunctionError):
                torch.onnx.export(Model(), args)
            select.__module__ = "torchvision.ops._register_onnx_ops"
            program: Any = torch.onnx.export(Model(), args)
        finally:
            torch.onnx.unregister_custom_op_symbolic("torchvision::nms", 11)
    assert program(*args).tolist() == [1, 2]


def test_select_takes_a_tensor_of_indices_as_torchvisions_functions_give() -> None:
    def columns(g: Any, x: Any) -> Any:
        from torch.onnx import symbolic_opset11 as opset11

        index = g.op("Constant", value_t=torch.tensor([2, 0]))
        one = opset11.unsqueeze(g, opset11.select(g, x, 1, 1), 1)
        return g.op("Concat", opset11.select(g, x, 1, index), one, axis_i=1)

    with sardonyx.installed():
        torch.onnx.register_custom_op_symbolic("aten::relu", columns, 11)
        try:
            program: Any = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2, 3),))
        finally:
            torch.onnx.unregister_custom_op_symbolic("aten::relu", 11)
    x = torch.randn(2, 3)
    torch.testing.assert_close(program(x), x[:, [2, 0, 1]])
