"""`sardonyx ops`: what has a form, and where it comes from."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

import sardonyx
from sardonyx.cli import app


def ops(*arguments):
    result = CliRunner().invoke(app, ["ops", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_names():
    names = ops().stdout.splitlines()
    assert len(names) > 500
    assert {"aten::add.Tensor", "torchvision::nms"} <= set(names)
    assert ops("nms").stdout.splitlines() == ["torchvision::nms"]


def test_sources():
    rows = dict(line.split(maxsplit=1) for line in ops("--source").stdout.splitlines())
    assert rows["aten::elu"].startswith("sardonyx.lower.ops.")
    assert rows["torchvision::nms"] == "sardonyx.plugins.torchvision"


def test_registered_functions_are_listed():
    sardonyx.register_custom_op_symbolic("aten::elu", lambda g, *a: None, 9)
    row = next(r for r in ops("--source").stdout.splitlines() if r.startswith("aten::elu "))
    assert "test_operator_sources (registered, from opset 9)" in row


def test_packages_and_those_that_fail(tmp_path: Path, monkeypatch):
    for name, forms in (
        ("ops_listed", "from sardonyx.lower.registry import lowering\n"
         "@lowering('ops_listed::foo')\ndef foo(b, x): return b.Relu(x)\n"),
        ("ops_broken", "import no_such_module\n"),
    ):  # fmt: skip
        (tmp_path / f"{name}_forms.py").write_text(forms)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[sardonyx.operators]\n{name} = {name}_forms\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    result = ops("--source", "ops_listed")
    assert result.stdout.split() == ["ops_listed::foo", "ops_listed_forms"]
    assert "no_such_module" in result.stderr
