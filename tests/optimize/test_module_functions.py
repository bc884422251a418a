"""export_modules_as_functions: classes of modules as functions of the file."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor, nn

import sardonyx
from sardonyx.options import Options

CAPTURES = ("export", "trace", "script")


class Block(nn.Module):
    def __init__(self, eps: float = 1e-5) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4, eps=eps)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.norm(torch.relu(self.linear(x)))


class Tower(nn.Module):
    """The first block runs twice, and its linear layer once more by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block(), Block(1e-2)])
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        x = self.layers[0](x)
        return self.head(torch.tanh(self.layers[0].linear(x)))


def _calls(program: sardonyx.ONNXProgram) -> Counter[str]:
    model = program.model
    graphs = [model.graph, *(function.graph for function in model.functions.values())]
    return Counter(n.op_type for graph in graphs for n in graph.all_nodes() if n.domain)


def _functions(program: sardonyx.ONNXProgram) -> dict[str, onnx.FunctionProto]:
    proto = program.model_proto
    onnx.checker.check_model(proto, full_check=True)
    return {function.name: function for function in proto.functions}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("capture", CAPTURES)
def test_one_function_for_each_class(capture: str, optimize: bool) -> None:
    program = sardonyx.export(
        Tower(),
        (torch.randn(3, 4),),
        capture=capture,
        dynamic_axes={"x": {0: "batch"}},
        export_modules_as_functions=True,
        optimize=optimize,
        verify=True,
    )
    functions = _functions(program)
    assert set(functions) == {"Linear", "LayerNorm", "Block", "Tower"}
    assert functions["Linear"].domain == "torch.nn.modules.linear"
    assert functions["LayerNorm"].domain == "torch.nn.modules.normalization"
    assert functions["Block"].domain == __name__
    assert _calls(program) == {"Tower": 1, "Block": 4, "Linear": 3, "LayerNorm": 1}
    assert list(functions["Linear"].input) == ["input", "weight", "bias"]
    assert list(functions["LayerNorm"].attribute) == ["epsilon"]
    assert list(functions["Block"].attribute) == ["epsilon"]
    assert set(program.model.graph.initializers) == set(Tower().state_dict())


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_set_of_classes(capture: str) -> None:
    asked = {Block, nn.Dropout}
    program = sardonyx.export(
        Tower(),
        (torch.randn(3, 4),),
        capture=capture,
        export_modules_as_functions=asked,
        verify=True,
    )
    assert set(_functions(program)) == {"Block"}
    assert [n.op_type for n in program.model.graph].count("Block") == 4
    assert "there is no Dropout in the model to make a function of" in program.notes


@pytest.mark.parametrize("nothing", [False, set(), None])
def test_no_classes_is_a_plain_export(nothing: Any) -> None:
    x = torch.randn(3, 4)
    model = Tower()
    plain = sardonyx.export(model, (x,))
    program = sardonyx.export(model, (x,), export_modules_as_functions=nothing or False)
    assert program.to_text() == plain.to_text()
    assert not program.model.functions


class Overloaded(nn.Module):
    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        return x.exp() if y is None else (x + y, x * y)


class Overloads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Overloaded()

    def forward(self, x: Tensor, y: Tensor) -> Any:
        return self.inner(x), self.inner(x, y), self.inner(y)


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_configurations_are_numbered(capture: str) -> None:
    program = sardonyx.export(
        Overloads(),
        (torch.randn(3), torch.randn(3)),
        capture=capture,
        export_modules_as_functions={Overloaded},
        verify=True,
    )
    assert set(_functions(program)) == {"Overloaded", "Overloaded.1"}
    assert _calls(program) == {"Overloaded": 2, "Overloaded.1": 1}


class Settings(nn.Module):
    """What the layers were made with differs, what they do is the same."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.CELU(1.0),
            nn.Conv2d(4, 4, 3, stride=2), nn.BatchNorm2d(4), nn.CELU(2.0), nn.Dropout(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


@pytest.mark.parametrize("capture", CAPTURES)
def test_settings_are_attributes(capture: str) -> None:
    program = sardonyx.export(
        Settings(),
        (torch.randn(2, 3, 8, 8),),
        capture=capture,
        export_modules_as_functions=True,
        verify=True,
    )
    functions = _functions(program)
    assert set(functions) == {"Conv2d", "BatchNorm2d", "CELU", "Sequential", "Settings"}
    assert list(functions["CELU"].attribute) == ["alpha"]
    assert set(functions["Conv2d"].attribute) == {"pads", "strides"}
    assert not functions["BatchNorm2d"].attribute
    text = program.to_text()
    assert "torch.nn.modules.activation::CELU[alpha=2]" in text
    assert "alpha=@alpha" in text


def test_attention_with_dynamic_sizes() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    program = sardonyx.export(
        nn.TransformerEncoder(layer, 3, enable_nested_tensor=False),
        (torch.randn(2, 5, 8),),
        dynamic_axes={"src": {0: "batch", 1: "time"}},
        export_modules_as_functions=True,
        verify=True,
    )
    calls = _calls(program)
    assert calls["TransformerEncoderLayer"] == 3
    assert {name for name in calls if name.startswith("TransformerEncoderLayer")} == {
        "TransformerEncoderLayer"
    }


class Looped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(3, 3)

    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = torch.tanh(self.cell(x))
        return x


def test_a_call_in_a_loop() -> None:
    program = sardonyx.export(
        torch.jit.script(Looped()),
        (torch.randn(2, 3), 4),
        export_modules_as_functions={nn.Linear},
        verify=True,
    )
    assert set(_functions(program)) == {"Linear"}
    (loop,) = (n for n in program.model.graph if n.op_type == "Loop")
    assert "Linear" in [n.op_type for n in loop.attributes["body"].as_graph()]


class Noise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand_like(x)


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.noise = Noise()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.noise(self.noise(x)), x * 2


def test_random_functions_are_not_merged_nor_compared() -> None:
    program = sardonyx.export(
        Noisy(), (torch.randn(4),), export_modules_as_functions=True, verify=True
    )
    assert _calls(program)["Noise"] == 2
    assert program.verification is not None and program.verification.skipped


def test_an_exported_program() -> None:
    x = torch.randn(3, 4)
    exported = torch.export.export(Tower().eval(), (x,))
    program = sardonyx.export(exported, (x,), export_modules_as_functions={Block}, verify=True)
    assert set(_functions(program)) == {"Block"}
    assert _calls(program) == {"Block": 4}


@pytest.mark.parametrize("kept", [{"export_params": False}, {"keep_initializers_as_inputs": True}])
def test_parameters_as_inputs(kept: dict[str, bool]) -> None:
    program = sardonyx.export(
        Tower(), (torch.randn(3, 4),), export_modules_as_functions=True, verify=True, **kept
    )
    names = [value.name for value in program.model.graph.inputs]
    assert set(names) == {"x", *Tower().state_dict()}


def test_files(tmp_path: Path) -> None:
    x = torch.randn(3, 4)
    path = tmp_path / "tower.onnx"
    program = sardonyx.export(
        Tower().eval(),
        (x,),
        path,
        export_modules_as_functions=True,
        external_data=sardonyx.ExternalData(size_threshold=0),
        verify=True,
    )
    stream = io.BytesIO()
    program.save(stream)
    again = io.BytesIO()
    program.save(again)
    assert stream.getvalue() == again.getvalue()
    for proto in (onnx.load(path), onnx.load_model_from_string(stream.getvalue())):
        assert {f.name for f in proto.functions} == {"Linear", "LayerNorm", "Block", "Tower"}
        assert proto.ir_version >= 8
        imports = {each.domain for each in proto.opset_import}
        assert imports >= {f.domain for f in proto.functions}
    assert "Block" in program.report()
    assert "sardonyx.calls" not in str(program.model_proto)


def test_nodes_of_functions_are_named_from_their_module() -> None:
    program = sardonyx.export(Tower(), (torch.randn(3, 4),), export_modules_as_functions=True)
    functions = {function.name: function for function in program.model.functions.values()}
    assert [n.name for n in functions["Block"]] == [
        "/linear/Linear",
        "/Relu",
        "/norm/LayerNorm",
        "/Add",
    ]
    assert [n.metadata_props["sardonyx.scope"] for n in functions["Block"]] == [
        "Block/Linear[linear]",
        "Block",
        "Block/LayerNorm[norm]",
        "Block",
    ]
    assert functions["Tower"][1].name == "/layers/1/Block"


@pytest.mark.parametrize("bad", [1, "Linear", nn.Linear, {"Linear"}, {int}, [nn.Linear(1, 1)]])
def test_what_is_no_class_of_modules_is_refused(bad: Any) -> None:
    with pytest.raises(sardonyx.InvalidOptionError, match="export_modules_as_functions must"):
        sardonyx.export(Tower(), (torch.randn(3, 4),), export_modules_as_functions=bad)


def test_old_opsets_have_no_functions() -> None:
    with pytest.raises(sardonyx.InvalidOptionError, match="opset_version 15 or later, not 14"):
        Options(export_modules_as_functions={nn.Linear}, opset_version=14)
    Options(export_modules_as_functions=set(), opset_version=14)


@pytest.mark.parametrize("capture", ["export", "trace"])
def test_constant_states_are_of_no_other_module(capture: str) -> None:
    """The counters of the normalizations are constants, and no results of the module that happens
    to run last."""
    model = nn.Sequential(nn.BatchNorm1d(4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    program = sardonyx.export(
        model,
        torch.randn(3, 4),
        capture=capture,
        training=sardonyx.TrainingMode.TRAINING,
        state_outputs=True,
        export_modules_as_functions=True,
    )
    functions = _functions(program)
    assert len(functions["Dropout"].output) == 1
    assert len(functions["BatchNorm1d"].output) == 3
    found = program._run([torch.randn(3, 4)])
    for counter in ("0.num_batches_tracked.out", "1.num_batches_tracked.out"):
        assert found[counter].item() == 1
