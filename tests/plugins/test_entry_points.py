"""A package brings the ONNX forms of its own operators."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import sardonyx
from tests.lower.ops.harness import check

DOCUMENT = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)
(FORMS,) = [block for block in BLOCKS if "@lowering" in block]


def install(folder: Path, namespace: str, forms: str) -> None:
    (folder / f"{namespace}_forms.py").write_text(forms)
    info = folder / f"{namespace}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {namespace}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[sardonyx.operators]\n{namespace} = {namespace}_forms\n"
    )


def define(namespace: str) -> torch.library.Library:
    library = torch.library.Library(namespace, "DEF")
    library.define("scaled_relu(Tensor x, float scale) -> Tensor")
    library.impl("scaled_relu", lambda x, scale: x.relu() * scale, "CompositeExplicitAutograd")
    return library


def test_a_package_with_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = define("sardonyx_test_plugin")
    install(tmp_path, "sardonyx_test_plugin", FORMS.replace("my_package", "sardonyx_test_plugin"))
    monkeypatch.syspath_prepend(str(tmp_path))
    check(
        lambda x: torch.ops.sardonyx_test_plugin.scaled_relu(x, 1.5),
        torch.randn(3, 4),
        dynamic={0: [0]},
        others=[(torch.randn(5, 4),)],
    )
    library._destroy()


def test_a_module_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = define("sardonyx_broken_plugin")
    install(tmp_path, "sardonyx_broken_plugin", "import no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="no_such_module"):
        sardonyx.export(
            lambda x: torch.ops.sardonyx_broken_plugin.scaled_relu(x, 1.5), (torch.randn(3),)
        )
    library._destroy()


def test_operators_without_a_form_are_still_reported() -> None:
    library = define("sardonyx_no_plugin")
    with pytest.raises(sardonyx.UnsupportedOperatorError, match="sardonyx_no_plugin::scaled_relu"):
        sardonyx.export(
            lambda x: torch.ops.sardonyx_no_plugin.scaled_relu(x, 1.5), (torch.randn(3),)
        )
    library._destroy()
