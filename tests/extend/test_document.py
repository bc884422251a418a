"""The Python of docs/extending.md is run, in its order, as one program in a file."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import onnx

DOCUMENT = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)


def test_the_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # A file and not exec(): onnxscript reads the source of its functions.
    Path("extending_document.py").write_text(
        "\n".join(block for block in BLOCKS if "@lowering" not in block)
    )
    importlib.import_module("extending_document")
    softplus = onnx.load("softplus.onnx").graph
    assert [n.op_type for n in softplus.node if n.op_type != "Constant"] == [
        "Mul",
        "Softplus",
        "Div",
    ]
    assert len(BLOCKS) == 6
