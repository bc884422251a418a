"""Imports point one way: a stage knows the stages before it, never those after."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sardonyx

ROOT = Path(sardonyx.__file__).parent
STAGES = ["capture", "lower", "legalize", "optimize", "serialize", "verify"]
FILES = sorted(path for stage in STAGES for path in (ROOT / stage).rglob("*.py"))


def imported_stages(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "sardonyx" and len(parts) > 1 and parts[1] in STAGES:
                yield parts[1]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_stage_imports_only_earlier_stages(path: Path) -> None:
    stage = path.relative_to(ROOT).parts[0]
    later = {s for s in imported_stages(path) if STAGES.index(s) > STAGES.index(stage)}
    assert not later


def test_nothing_calls_the_rival() -> None:
    """Only the flag behind `torch.onnx.is_in_onnx_export()` is set, in one place, and `install()`
    puts its own functions under the names of the module."""
    forbidden = re.compile(r"torch\.onnx|_jit_pass_onnx|torch_?lib\b")
    found = []
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text())
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            text = ""
            if isinstance(node, ast.ImportFrom):
                text = node.module or ""
            elif isinstance(node, ast.Import):
                text = " ".join(alias.name for alias in node.names)
            elif isinstance(node, ast.Attribute):
                text = ast.unparse(node)
            elif isinstance(node, ast.Constant) and id(node) not in docs:
                text = node.value if isinstance(node.value, str) else ""
            if forbidden.search(text):
                found.append((path.relative_to(ROOT).as_posix(), text))
    assert [f for f in found if not f[0].startswith("_torch_private/")] == []
    assert {text for _, text in found} <= {
        "torch.onnx._internal.torchscript_exporter._globals",
        "torch.onnx",
    }


def test_private_torch_is_touched_in_one_place() -> None:
    private = re.compile(r"\btorch\._[a-zA-Z]|from torch\.[\w.]*\._|import torch\.[\w.]*\._")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in ROOT.rglob("*.py")
        if path.parent.name != "_torch_private"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if private.search(line.split("#")[0]) and '"' not in line
    ]
    assert not found
