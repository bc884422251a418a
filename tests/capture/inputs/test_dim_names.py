"""What the dynamic dims of a given ExportedProgram are called in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch.export import Dim, ExportedProgram
from typer.testing import CliRunner

import sardonyx
from sardonyx.cli import app


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, more: dict[str, Any], *, z: torch.Tensor) -> Any:
        return x.sum(1) + more["y"][0], z * 2


def exported(**dynamic_shapes: Any) -> ExportedProgram:
    args = (torch.randn(4, 5), {"y": [torch.randn(4)]})
    kwargs = {"z": torch.randn(8)}
    return torch.export.export(Model(), args, kwargs, dynamic_shapes=dynamic_shapes)


def named() -> ExportedProgram:
    b, k = Dim("b", min=2, max=64), Dim("k")
    return exported(x={0: b, 1: k}, more={"y": [{0: b}]}, z={0: 2 * b})


def dims(program: sardonyx.ONNXProgram) -> dict[str, list[str]]:
    values = [*program.model.graph.inputs, *program.model.graph.outputs]
    return {str(value.name): [str(dim) for dim in value.shape or ()] for value in values}


def test_the_names_that_torch_export_was_given() -> None:
    program = sardonyx.export(named(), verify=True)
    assert dims(program) == {
        "x": ["b", "k"],
        "more_y_0": ["b"],
        "z": ["2*b"],
        "output_0": ["b"],
        "output_1": ["2*b"],
    }


def test_sizes_without_a_name_are_called_after_their_place() -> None:
    program = sardonyx.export(
        exported(x={0: Dim.AUTO, 1: Dim.DYNAMIC}, more={"y": [{0: Dim.AUTO}]}, z={0: Dim("q")})
    )
    assert dims(program)["x"] == ["x_dim_0", "x_dim_1"]
    assert dims(program)["more_y_0"] == ["x_dim_0"]
    assert dims(program)["z"] == ["q"]


def test_a_name_that_is_asked_for_is_that_of_every_dim_of_the_size() -> None:
    program = sardonyx.export(named(), dynamic_axes={"x": {0: "batch"}})
    assert dims(program)["more_y_0"] == ["batch"]
    assert dims(program)["z"] == ["2*batch"]
    assert dims(program)["x"] == ["batch", "k"]


def test_names_that_change_places() -> None:
    """One that is asked for is no longer that of another size."""
    program = sardonyx.export(named(), dynamic_axes={"x": {0: "k"}})
    assert dims(program)["more_y_0"] == ["k"]
    assert dims(program)["x"] == ["k", "x_dim_1"]


@pytest.mark.parametrize("asked", [(), ("--dynamic", "x:0=b", "--dynamic", "x:1=k")])
def test_a_file_has_none_and_takes_those_of_the_command(
    asked: tuple[str, ...], tmp_path: Path
) -> None:
    """PyTorch writes sizes as s17: `--dynamic` names them."""
    stored, written = tmp_path / "m.pt2", tmp_path / "m.onnx"
    torch.export.save(named(), stored)
    result = CliRunner().invoke(app, ["export", str(stored), "-o", str(written), *asked])
    assert result.exit_code == 0
    graph = onnx.load(written).graph
    shapes = [[d.dim_param for d in v.type.tensor_type.shape.dim] for v in graph.input]
    if asked:
        assert shapes == [["b", "k"], ["b"], ["2*b"]]
    else:
        assert shapes == [["x_dim_0", "x_dim_1"], ["x_dim_0"], ["2*x_dim_0"]]


def test_the_symbols_of_torch_are_not_told() -> None:
    """Where no dim is the one that another is computed from, or the name is taken."""

    class Both(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.cat([x[:, 0], y[:, 0]])

    inputs = (torch.randn(6, 4), torch.randn(9, 4))
    derived = ({0: Dim("b", min=2) + 1}, {0: Dim("s40")})
    taken = ({0: Dim("y_dim_0")}, {0: Dim.AUTO})
    found = {}
    for name, shapes in (("derived", derived), ("taken", taken)):
        given = torch.export.export(Both(), inputs, dynamic_shapes=shapes)
        found[name] = [sizes[0] for sizes in dims(sardonyx.export(given, verify=True)).values()]
    assert found["derived"] == ["b + 1", "s40", "b + s40 + 1"]
    assert found["taken"] == ["y_dim_0", "y_dim_0_2", "y_dim_0 + y_dim_0_2"]
