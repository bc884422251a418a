"""Where the nodes of a scripted model come from, and what its file looks like."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

import sardonyx
from tests.cost import function_calls


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x).mean([2, 3])
        if x.sum() > 0:
            x = x * 2
        return self.head(x)


def _nodes(program: sardonyx.ONNXProgram) -> list[ir.Node]:
    return list(program.model.graph.all_nodes())


def test_nodes_know_their_module_and_line() -> None:
    program = sardonyx.export(torch.jit.script(Net()), (torch.randn(1, 3, 5, 5),))
    conv = next(n for n in _nodes(program) if n.op_type == "Conv")
    assert conv.metadata_props["sardonyx.module"] == "features.0"
    assert conv.metadata_props["sardonyx.scope"] == "Net/Sequential[features]/Conv2d[0]"
    branch = next(n for n in _nodes(program) if n.op_type == "If")
    assert "/test_provenance.py:" in branch.metadata_props["sardonyx.source"]
    assert branch.metadata_props["sardonyx.code"] == "if x.sum() > 0:"
    assert set(program.model.graph.initializers) >= {"features.0.weight", "head.weight"}


def repeated(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = torch.relu(x * 2 - i)
    return x


def repeated_ten(x: Tensor) -> Tensor:
    return repeated(x, 10)


def repeated_thousand(x: Tensor) -> Tensor:
    return repeated(x, 1000)


def test_one_loop_whatever_the_count() -> None:
    sizes = []
    for function in (repeated_ten, repeated_thousand):
        program = sardonyx.export(torch.jit.script(function), (torch.randn(2, 3),))
        nodes = _nodes(program)
        assert [n.op_type for n in nodes].count("Loop") == 1
        sizes.append(len(nodes))
    assert sizes[0] == sizes[1]


def _long_program(path: Path, operators: int) -> Any:
    lines = ["import torch", "", "def long(x: torch.Tensor) -> torch.Tensor:", "    y = x"]
    for i in range(operators // 4):
        lines += [f"    y = torch.relu(y * {i % 3}.5 + x)", "    y[0] += 1"]
        if i % 20 == 0:
            lines += ["    if y.sum() > 0:", "        y = y - 1"]
    path.write_text("\n".join([*lines, "    return y", ""]))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return torch.jit.script(module.long)


def test_twice_the_program_is_twice_the_work(tmp_path: Path) -> None:
    short, long = (_long_program(tmp_path / f"long_{n}.py", n) for n in (200, 400))
    x = torch.randn(3, 4)
    calls = [function_calls(lambda p=p: sardonyx.export(p, (x,))) for p in (short, long)]
    assert calls[1] < 2.2 * calls[0]


class Unusual(nn.Module):
    def forward(this, x: Tensor, k: int, scale: float = 1.0) -> Tensor:
        for _ in range(k):
            x = x * 2
        return x * scale


def test_names_and_types_are_those_of_the_program() -> None:
    """Whatever the module is called in it; a tensor is taken for a number as PyTorch takes it."""
    scripted, x = torch.jit.script(Unusual()), torch.randn(2, 3)
    program = sardonyx.export(scripted, (x, 2), dynamic_axes={"x": {0: "batch"}})
    assert [value.name for value in program.model.graph.inputs] == ["x", "k"]
    torch.testing.assert_close(program(torch.ones(4, 3), 3), torch.full((4, 3), 8.0))
    by_tensor = sardonyx.export(scripted, (x, torch.tensor(2), torch.tensor(0.5)))
    found = by_tensor(x, torch.tensor(3), torch.tensor(0.25))
    torch.testing.assert_close(found, x * 2)
    of_int = sardonyx.export(scripted, (x, 2, 3))
    torch.testing.assert_close(of_int(x, 1, 4), x * 8)
    with pytest.raises(sardonyx.InvalidOptionError, match="'k' is an int of the scripted model"):
        sardonyx.export(scripted, (x, 2.0))


def test_what_is_refused_names_the_line() -> None:
    def grows(x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = x.unsqueeze(0)
        return x.transpose(0, 1)

    with pytest.raises(sardonyx.CaptureError, match=r"test_provenance.py:\d+"):
        sardonyx.export(torch.jit.script(grows), (torch.randn(2), 3))
