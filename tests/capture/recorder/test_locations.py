"""Every node knows its module, its class path, and the line of the model it comes from."""

from __future__ import annotations

import os

import pytest
import torch

import sardonyx

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.inner(x))  # block


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Sigmoid())
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.named = torch.nn.ModuleDict({"exit": Block()})
        self.shared = torch.nn.Softplus()

    def forward(self, x):
        x = self.features(x)  # features
        x = self.shared(x)  # first use
        for block in self.blocks:
            x = block(x)
        x = self.named["exit"](x)
        x = self.shared(x)  # second use
        return self.finished(x).cos()  # own

    def finished(self, x):
        return x.sin()  # method


EXAMPLE = (torch.randn(1, 1, 6, 6),)


def export(capture, f=None):
    return sardonyx.export(Net(), EXAMPLE, f, capture=capture, optimize=False)


def nodes(program, op_type):
    return [n for n in program.model.graph if n.op_type == op_type]


@BOTH
def test_modules_and_classes(capture):
    program = export(capture)
    (conv,) = nodes(program, "Conv")
    assert conv.metadata_props["sardonyx.module"] == "features.0"
    assert conv.metadata_props["sardonyx.scope"] == "Net/Sequential[features]/Conv2d[0]"
    assert conv.name == "/features/0/Conv"
    tanhs = [n.metadata_props["sardonyx.module"] for n in nodes(program, "Tanh")]
    assert tanhs == ["blocks.0", "blocks.1", "named.exit"]
    scopes = [n.metadata_props["sardonyx.scope"] for n in nodes(program, "Tanh")]
    assert scopes == [
        "Net/ModuleList[blocks]/Block[0]",
        "Net/ModuleList[blocks]/Block[1]",
        "Net/ModuleDict[named]/Block[exit]",
    ]
    (cos,) = nodes(program, "Cos")
    assert cos.metadata_props.get("sardonyx.module", "") == ""
    assert cos.metadata_props["sardonyx.scope"] == "Net"


@BOTH
def test_a_module_that_is_used_twice(capture):
    uses = nodes(export(capture), "Softplus")
    assert [n.metadata_props["sardonyx.module"] for n in uses] == ["shared", "shared"]
    assert [n.metadata_props["sardonyx.code"].split("# ")[1] for n in uses] == [
        "first use",
        "second use",
    ]


@BOTH
def test_lines_and_source_text(capture):
    program = export(capture)
    for op_type, mark in (
        ("Conv", "features"),
        ("Tanh", "block"),
        ("Sin", "method"),
        ("Cos", "own"),
    ):
        node = nodes(program, op_type)[0]
        file, line = node.metadata_props["sardonyx.source"].rsplit(":", 1)
        assert os.path.basename(file) == "test_locations.py"
        with open(__file__) as source:
            text = source.read().splitlines()[int(line) - 1].strip()
        assert text.endswith(f"# {mark}")
        assert node.metadata_props["sardonyx.code"] == text


@BOTH
def test_no_absolute_path_in_the_file(capture, tmp_path):
    file = tmp_path / "net.onnx"
    export(capture, file)
    content = file.read_bytes()
    for folder in (
        os.path.dirname(os.path.abspath(__file__)),
        os.getcwd(),
        str(tmp_path),
        "/work/",
    ):
        assert folder.encode() not in content
    assert os.path.dirname(torch.__file__).encode() not in content


@BOTH
def test_a_function_has_its_own_name_for_a_scope(capture):
    def doubled(x):
        return x.cos() * 2

    program = sardonyx.export(doubled, (torch.randn(3),), capture=capture)
    (cos,) = nodes(program, "Cos")
    assert cos.metadata_props["sardonyx.scope"] == "doubled"
    assert "return x.cos() * 2" in cos.metadata_props["sardonyx.code"]
